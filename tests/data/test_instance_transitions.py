"""Rows of several steps of an instance hold every step once, with its own return and next observation."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import edgewise as ew
from edgewise.data.episodes import EpisodeRollout
from edgewise.data.instance_batch import COUNTED
from edgewise.data.instance_transitions import MADE, STEPS_PER_ROW, InstanceTransitions, deal
from edgewise.data.random_policy import RandomPolicy

GAMMA = 0.9


def batch_of(name="cvrp", worlds=6, **settings):
    """Whole episodes of different lengths, one of each instance."""
    env = ew.make_env(name, num_envs=worlds, seed=3, **(settings or {"num_customers": (2, 9)}))
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    return EpisodeRollout(env, policy, keep_next=True).collect()


def make(steps=1):
    return InstanceTransitions(["graph", "step", "action_mask"], steps=steps, discount=GAMMA)


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(1, 4))
def test_every_step_is_dealt_to_one_row_of_its_instance(counted, size):
    counted = torch.tensor(counted)
    instance, step, made = deal(counted, size)
    dealt = sorted(
        (int(one), int(other))
        for one, row, used in zip(instance, step, made, strict=True)
        for other in row[used]
    )
    assert dealt == [tuple(pair) for pair in counted.nonzero().tolist()]
    assert bool(counted[instance.unsqueeze(-1), step].all()), "slots that are not made repeat a step that was"
    assert len(instance) == sum(-(-int(row.sum()) // size) for row in counted)


def test_a_row_has_early_and_late_steps():
    _, step, made = deal(torch.ones(1, 20, dtype=torch.bool), 8)
    assert all(row[used].max() - row[used].min() >= 15 for row, used in zip(step, made, strict=True))


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_rows_hold_the_transitions_of_whole_episodes(steps):
    batch = batch_of()
    rows = make(steps).expand(make(steps).stored(batch))
    assert rows["observation"].batch_size == (len(rows), STEPS_PER_ROW)
    found = 0
    for row in rows:
        owner = (batch["graph", "pos"] == row["observation", "graph", "pos"][0]).flatten(1).all(1)
        (world,) = owner.nonzero().flatten().tolist()
        episode = batch["steps"][world][batch["steps", COUNTED][world]]
        for slot in range(STEPS_PER_ROW):
            if not row[MADE][slot]:
                continue
            found += 1
            same = (episode["action_mask"] == row["observation", "action_mask"][slot]).all(-1)
            for entry in ("current", "x", "u"):
                where = ("step", "nodes", entry) if entry == "current" else ("step", entry)
                if episode.get(where, None) is not None:
                    value = episode.get(where).reshape(len(episode), -1)
                    same &= (value == row["observation"].get(where)[slot].reshape(-1)).all(-1)
            at = int(same.nonzero()[0])
            assert episode["action"][at] == row["action"][slot]
            last = min(at + steps, len(episode)) - 1
            reward = sum(
                GAMMA**ahead * float(episode["next", "reward"][at + ahead]) for ahead in range(last - at + 1)
            )
            assert float(row["reward"][slot]) == pytest.approx(reward, rel=1e-5)
            over = bool(episode["next", "terminated"][last])
            discount = 0.0 if over else GAMMA ** (last - at + 1)
            assert float(row["discount"][slot]) == pytest.approx(discount, rel=1e-5)
            after = episode["next", "action_mask"][last]
            assert torch.equal(after, row["next_observation", "action_mask"][slot])
    assert found == int(batch["steps", COUNTED].sum())


def test_a_graph_is_stored_once_for_the_steps_of_a_row():
    stored = make().stored(batch_of(num_customers=24, worlds=4))
    assert "graph" not in stored["observation"]
    assert stored["graph"].batch_size == (len(stored),)
    graphs = make().expand(stored)["observation", "graph", "x"]
    assert graphs.stride(1) == 0, "all steps of a row share one tensor"
