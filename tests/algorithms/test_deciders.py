"""Features of deciders that share an observation come from what their model reads, and from nothing else."""

import pytest
import torch
from tests.algorithms.sea import SMALL, sea
from tests.algorithms.tables import MODEL, make_env

import edgewise as ew
from edgewise.algorithms.deciders import deciders_of


@pytest.mark.parametrize(
    ("observe", "reads_graph", "reads_ego"),
    [("graph", True, False), ("ego", False, True), ("both", True, True)],
)
@pytest.mark.parametrize("role", ["actor", "critic"])
def test_features_change_with_what_is_read(observe, reads_graph, reads_ego, role):
    env = sea("buoys", num_envs=4)
    model = MODEL.model_copy(update={"observe": observe, "ego": SMALL})
    features = deciders_of(env, model, mixing="sum").features(role)
    root = env.reset()
    before = features(root)
    assert before.shape == (4, 3, features.width)
    for key, matters in ((("graph", "x"), reads_graph), (("agents", "ego", "self"), reads_ego)):
        changed = root.clone()
        changed[key] = torch.randn_like(changed[key])
        assert torch.equal(features(changed), before) != matters


@pytest.mark.parametrize(("env", "mixing"), [("multihop", "sum"), ("nodes", "none"), ("pair", "none")])
def test_deciders_without_a_reward_of_their_own_are_a_team(env, mixing):
    """Groups of edges share one reward, agents have one each, and a single decider needs no mixer."""
    env = ew.make_env(env, num_envs=1, seed=0) if env == "multihop" else make_env(env)
    deciders = deciders_of(env, MODEL, mixing="auto")
    assert deciders.mixing == mixing
    assert (deciders.mixer() is None) == (mixing == "none")
