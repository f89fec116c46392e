"""Ablated policies lose exactly what they were ablated of."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from torch import nn

import edgewise as ew
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.evaluation.ablation import ComparedPolicy, ablate
from edgewise.evaluation.evaluate import evaluate
from edgewise.models.actor_critic import make_actor_critic
from edgewise.report.ablations import read_ablations


@pytest.fixture
def env():
    return ew.make_env("graphwalk", num_envs=16, num_nodes=(5, 9), seed=0)


class HighestFeature(nn.Module):
    """Choose the legal node with the largest value in one column of `x`."""

    def __init__(self, column):
        super().__init__()
        self.column = column

    def forward(self, root):
        score = root["graph", "x"][..., self.column].masked_fill(~root["action_mask"], -torch.inf)
        return root.set("action", score.argmax(-1))


def actor(env):
    torch.manual_seed(0)
    return make_actor_critic(env.graph, env.actions).actor.eval()


def test_a_feature_is_its_mean_and_the_others_stay(env):
    root, seen = env.reset(), []
    policy = ablate(
        lambda given: seen.append(given) or given.set("action", given["action_mask"].int().argmax(-1)),
        "x[1]",
        env,
    )
    acted = policy(root)
    before, after = root["graph", "x"], seen[0]["graph", "x"]
    exists = root["graph", "node_mask"]
    assert torch.allclose(after[..., 1], before[exists][:, 1].mean())
    kept = [column for column in range(before.shape[-1]) if column != 1]
    assert torch.equal(after[exists][:, kept], before[exists][:, kept])
    assert torch.equal(acted["graph", "x"], before)


def test_padding_does_not_enter_the_mean(env):
    root = env.reset()
    exists = root["graph", "node_mask"]
    root["graph", "x"][~exists] = torch.nan
    seen = []
    ablate(lambda given: seen.append(given) or given.set("action", exists.int().argmax(-1)), "nodes", env)(
        root
    )
    assert seen[0]["graph", "x"][exists].isfinite().all()


def test_a_policy_without_edges_is_the_policy_on_a_graph_without_edges(env):
    root, policy = env.reset(), actor(env)
    without = root.clone()
    without["graph", "edge_mask"][:] = False
    ablated = ablate(policy, "edges", env)
    with torch.no_grad(), ew_deterministic():
        expected, found, whole = policy(without), ablated(root.clone()), policy(root.clone())
    assert torch.equal(expected["action_log_prob"], found["action_log_prob"])
    assert not torch.equal(whole["action_log_prob"], found["action_log_prob"])
    assert torch.equal(found["graph", "edge_mask"], root["graph", "edge_mask"])


def ew_deterministic():
    from torchrl.envs import ExplorationType, set_exploration_type

    return set_exploration_type(ExplorationType.DETERMINISTIC)


def test_edges_come_back_after_each_call_and_also_after_an_error(env):
    policy = actor(env)
    spec = policy.encoder.graph
    ablated = ablate(policy, "edges", env)
    with pytest.raises(AttributeError):
        ablated(env.reset().exclude("graph"))
    assert policy.encoder.graph is spec


def test_changed_actions_are_counted_over_played_steps_only(env):
    policy, other = HighestFeature(0), HighestFeature(1)
    compared = ComparedPolicy(policy, other, env)
    result = evaluate(env, compared, episodes=16, seed=1)
    changed = played = 0
    env.set_seed(1)
    root = env.reset()
    alive = torch.ones(16, dtype=torch.bool)
    for _ in range(int(np.max(result.lengths))):
        one, two = (each(root.copy())["action"] for each in (policy, other))
        changed += int(((one != two) & alive).sum())
        played += int(alive.sum())
        after = env.step_mdp(env.step(root.copy().set("action", one))).exclude("action")
        alive &= ~after["done"].squeeze(-1)
        root = after.where(alive, root)
    assert 0 < changed < played
    assert compared.share(result) == pytest.approx(changed / played)


def test_a_team_is_compared_by_its_acting_members_and_by_how_far_they_differ():
    """Of a range of 4, a twentieth is 0.2: less is no change, and idle members count for nothing."""
    active = torch.tensor([[True, True, False], [True, False, False]])
    root = TensorDict({"agents": {"active": active}}, [2])
    action = torch.tensor([[0.1, 0.3, 0.3], [0.1, 0.3, 0.3]]).unsqueeze(-1)
    compared = ComparedPolicy(
        lambda root: root.set("action", torch.zeros_like(action)),
        lambda root: root.set("action", action),
        SimpleNamespace(actions=SimpleNamespace(low=-2.0, high=2.0)),
    )
    compared(root)
    assert compared.share(SimpleNamespace(lengths=[1, 1])) == pytest.approx(1 / 3)


def test_columns_are_counted_from_zero(env):
    with pytest.raises(ConfigError, match=f"x has {env.graph.node_features} columns, counted from 0"):
        ablate(actor(env), f"x[{env.graph.node_features}]", env)
    ablate(actor(env), f"x[{env.graph.node_features - 1}]", env)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("colour", "expected edges, nodes, memory or one of"),
        ("memory", "has no memory"),
    ],
)
def test_what_is_not_there_is_refused_in_words(env, what, message):
    with pytest.raises(ConfigError, match=message):
        ablate(actor(env), what, env)


def test_a_policy_without_an_encoder_uses_no_edges(env):
    with pytest.raises(ConfigError, match="no graph encoder"):
        ablate(HighestFeature(0), "edges", env)


def test_memory_is_zero_in_every_step():
    team = ew.make_env("swarm", num_envs=4, seed=0)
    torch.manual_seed(0)
    policy = make_actor_critic(team.graph, team.actions, ew.ModelConfig(recurrent=True)).actor.eval()
    ablated, root = ablate(policy, "memory", team), team.reset()
    with torch.no_grad(), ew_deterministic():
        first = policy(root.clone())
        later = team.step_mdp(team.step(first))
        remembering, forgetting = policy(later.clone()), ablated(later.clone())
        fresh = policy(later.exclude("recurrent"))
    assert torch.equal(forgetting["action_log_prob"], fresh["action_log_prob"])
    assert not torch.equal(remembering["action_log_prob"], fresh["action_log_prob"])


def test_the_command_pairs_the_policy_with_itself(tmp_path, capsys):
    small = {
        "total_frames": 256,
        "num_envs": 8,
        "rollout_length": 16,
        "model.encoder.hidden": 16,
        "algorithm.epochs": 1,
    }
    small |= {"evaluation.episodes": 8, "logging.tensorboard": False}
    run = ew.train("graphwalk-ppo", folder=tmp_path / "run", progress=False, **small)
    assert main(["eval", str(run.path), "--ablate", "edges,x[0]", "--episodes", "6", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["ablations"]
    assert {row["without"] for row in rows} == {"edges", "x[0]"}
    row = next(row for row in rows if row["measure"] == "return" and row["without"] == "edges")
    assert row["difference"] == pytest.approx(row["mean"] - row["other_mean"])
    assert row["difference_low"] <= row["difference"] <= row["difference_high"]
    assert 0 <= row["changed_actions"] <= 1
    assert read_ablations(run.path / "ablations.json") == rows
    assert main(["verify", str(run.path)]) == 0
    assert main(["eval", str(run.path), "--ablate", "wind"]) == 2
    assert "expected edges, nodes, memory" in capsys.readouterr().err
    _kept_beside_others(run.path, rows, capsys)


def _kept_beside_others(path, rows, capsys):
    """Of the same instances the newest result is kept; those of other instances stay."""
    assert main(["eval", str(path), "--ablate", "edges", "--episodes", "6", "--json"]) == 0
    assert (
        main(["eval", str(path), "--ablate", "edges", "--episodes", "6", "--num-nodes", "7", "--json"]) == 0
    )
    capsys.readouterr()
    kept = read_ablations(path / "ablations.json")
    assert kept[: len(rows)] == rows
    assert {row["settings"].get("num_nodes") for row in kept[len(rows) :]} == {7}
