"""Stages of environments that name no stage settings: what fits may change, and nothing is ignored."""

import pytest
import torch

import edgewise as ew
from edgewise.config.errors import ConfigError


class TownConfig(ew.Config):
    num_houses: ew.WholeRange = (4, 8)
    width: int = 3
    pay: float = 1.0
    bonus: float = 2.0
    max_steps: int = 5


class TownEnv(ew.GraphEnv[TownConfig]):
    """Pays for every choice; `num_houses` is read by spawn, `pay` by advance and `bonus` by setup alone."""

    def setup(self):
        self.graph = ew.GraphSpec(ew.upper_bound(self.config.num_houses), self.config.width)
        self.actions = ew.ChooseNode()
        self.bonus = self.config.bonus

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        return {"exists": slots < self.sample_int(self.config.num_houses, count).unsqueeze(-1)}

    def advance(self, state, action):
        return ew.Transition({}, reward=self.config.pay * action.float() + self.bonus)

    def observe(self, state):
        exists = state["exists"]
        none = torch.zeros(len(exists), 2, 0, dtype=torch.int64)
        x = torch.ones(*exists.shape, self.graph.node_features)
        return {"graph": {"x": x, "node_mask": exists, "edge_index": none, "edge_mask": none[:, 0].bool()}}


class NarrowTown(TownEnv):
    """Takes the width of its tensors from the config instead of from the graph."""

    def spawn(self, count):
        width = ew.upper_bound(self.config.num_houses)
        return {"exists": torch.ones(count, width, dtype=torch.bool)}


def test_worlds_follow_the_stage_without_any_declaration():
    env = TownEnv(num_envs=32, seed=0)
    env.apply_stage(num_houses=5)
    assert (env.reset()["graph", "node_mask"].sum(-1) == 5).all()
    env.apply_stage(pay=0.0)
    assert set(env.reset()["graph", "node_mask"].sum(-1).tolist()) == {4, 5, 6, 7, 8}
    assert (env.rand_step(env.reset())["next", "reward"] == env.bonus).all()
    env.apply_stage(max_steps=1)
    assert env.rand_step(env.reset())["next", "truncated"].all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_houses": 9}, "needs 9 node slots, and there are 8"),
        ({"width": 4}, "node_features=4"),
        ({"bonus": 3.0}, "only `setup` uses it"),
        ({"num_houses": 0}, "cannot make worlds with num_houses=0"),
        ({"speed": 1}, "speed"),
    ],
)
def test_a_stage_that_would_be_ignored_or_does_not_fit_is_refused(settings, words):
    env = TownEnv(num_envs=2, seed=0)
    with pytest.raises(ConfigError, match=words):
        env.apply_stage(**settings)
    assert env.config == env.built_with == TownConfig()


def test_sizes_of_tensors_from_the_config_are_refused_with_the_remedy():
    env = NarrowTown(num_envs=2, seed=0)
    with pytest.raises(ConfigError, match=r"`graph.x` would be \[6, 3\]") as caught:
        env.apply_stage(num_houses=6)
    assert "self.graph" in caught.value.hint


def test_the_stage_of_a_plain_environment_is_saved():
    env, other = TownEnv(num_envs=4, seed=0), TownEnv(num_envs=4, seed=1)
    env.apply_stage(num_houses=(4, 5))
    other.load_state_dict(env.state_dict())
    assert other.config.num_houses == (4, 5)
    other.load_state_dict(TownEnv(num_envs=4).state_dict())
    assert other.config == TownConfig()


def test_trying_stages_changes_no_random_numbers():
    env, plain = TownEnv(num_envs=4, seed=0), TownEnv(num_envs=4, seed=0)
    before = torch.get_rng_state()
    env.apply_stage(num_houses=5)
    env.apply_stage()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(env.reset()["state", "exists"], plain.reset()["state", "exists"])


def test_the_contract_holds_for_both():
    ew.check_graph_env(TownEnv())
    ew.check_graph_env(NarrowTown())
