"""Transitions are exactly those of active robots, n steps of one robot of one episode, across batches too."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from tests.data.robots import one_by_one, played, told

from edgewise.data.transitions import Transitions

GAMMA = 0.9


def maker(steps=1):
    return Transitions(per_agent=True, steps=steps, discount=GAMMA)


def made(make, batch):
    """The transitions that are complete with a batch, as algorithms take them."""
    return make.expand(make.stored(batch))


def agent_transitions(batch, *, steps=1):
    """The transitions that are complete within one rollout."""
    return made(maker(steps), batch)


def same(found, expected):
    """Whether transitions agree: places exactly, numbers but for rounding."""
    return [row[:5] for row in found] == [row[:5] for row in expected] and torch.allclose(
        torch.tensor([row[5:] for row in found]), torch.tensor([row[5:] for row in expected]), atol=1e-5
    )


@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 6),
    robots=st.integers(1, 4),
    parts=st.lists(st.integers(1, 7), min_size=1, max_size=6),
)
def test_batches_of_any_length_give_what_a_loop_over_robots_gives(seed, steps, robots, parts):
    """However a rollout is cut into batches: windows that run off one come out of the next."""
    batch = played(seed, steps=sum(parts), robots=robots)
    make = maker(steps)
    found = [row for part in batch.split(parts, dim=1) for row in told(made(make, part.clone()))]
    assert same(sorted(found), one_by_one(batch, steps=steps, discount=GAMMA))


@given(seed=st.integers(0, 10_000))
def test_one_step_transitions_are_the_steps_of_active_robots(seed):
    batch = played(seed)
    found = agent_transitions(batch)
    assert len(found) == batch["agents", "active"].sum()
    assert (found["steps"] == 1).all()
    ended = batch["next", "agents", "terminated"] & batch["agents", "active"]
    assert (found["discount"] == 0).sum() == ended.sum()
    assert ended.any() or seed != 0


def dropped_terminals(batch, steps):
    found = agent_transitions(batch, steps=steps)
    return found[found["discount"] > 0]


def interleaved_robots(batch, steps):
    """All robots in one stream, as if they were one."""

    def woven(value):
        return value.flatten(1, 2).unsqueeze(2)

    robots = batch["agents", "active"].shape[-1]
    after = batch["next"]
    flags = {name: after[name].repeat_interleave(robots, 1) for name in ("done", "terminated")}
    ego, next_ego = (
        {name: woven(value) for name, value in source["agents", "ego"].items()} for source in (batch, after)
    )
    stream = TensorDict(
        {
            "agents": {"active": woven(batch["agents", "active"]), "ego": ego},
            "action": woven(batch["action"]),
            "next": {
                "agents": {
                    "active": woven(after["agents", "active"]),
                    "ego": next_ego,
                    "terminated": woven(after["agents", "terminated"]),
                },
                "reward": woven(after["reward"]),
                **flags,
            },
        },
        [batch.shape[0], batch.shape[1] * robots],
    )
    return agent_transitions(stream, steps=steps)


def mixed_episodes(batch, steps):
    batch["next", "done"] = torch.zeros_like(batch["next", "done"])
    batch["next", "agents", "active"] = torch.ones_like(batch["next", "agents", "active"])
    return agent_transitions(batch, steps=steps)


def timeouts_terminal(batch, steps):
    batch["next", "terminated"] = batch["next", "done"]
    return agent_transitions(batch, steps=steps)


def ghosts_stored(batch, steps):
    batch["agents", "active"] = torch.ones_like(batch["agents", "active"])
    return agent_transitions(batch, steps=steps)


@pytest.mark.parametrize(
    "plant", [dropped_terminals, interleaved_robots, mixed_episodes, timeouts_terminal, ghosts_stored]
)
def test_planted_faults_show(plant):
    expected = one_by_one(played(0), steps=3, discount=GAMMA)
    assert same(told(agent_transitions(played(0), steps=3)), expected)
    found = plant(played(0), 3)
    here, there = found["observation", "self"], found["next_observation", "self"]
    strangers = bool((here[:, 1:3] != there[:, 1:3]).any())
    assert strangers or not same(told(found), expected)


def test_what_waits_survives_a_save():
    batch = played(3, steps=10)
    first, second = (maker(4) for _ in range(2))
    first.stored(batch[:, :5].clone())
    second.load_state_dict(first.state_dict())
    one, other = (each.stored(batch[:, 5:].clone()) for each in (first, second))
    assert (one == other).all()
    forgetful = maker(4)
    assert len(forgetful.stored(batch[:, 5:].clone())) < len(one)


def test_what_waits_is_not_overwritten_with_the_batch():
    batch = played(3, steps=10)
    whole, reused = (maker(4) for _ in range(2))
    whole.stored(batch[:, :5].clone())
    storage = batch[:, :5].clone()
    reused.stored(storage)
    storage.zero_()
    assert (whole.stored(batch[:, 5:].clone()) == reused.stored(batch[:, 5:].clone())).all()


@pytest.mark.parametrize("discrete", [True, False])
def test_a_stored_transition_takes_279_bytes(discrete):
    """7 + 25 floats and 5 flags for each end, 8 bytes of action, a reward and a span."""
    stored = maker(3).stored(played(0, slots=5, discrete=discrete))
    leaves = stored[0].values(include_nested=True, leaves_only=True)
    assert sum(leaf.nbytes for leaf in leaves) == 279


@given(seed=st.integers(0, 10_000), steps=st.integers(1, 5))
def test_what_is_stored_comes_back(seed, steps):
    """The sign of a span says whether it ends in a termination, and its size the number of steps."""
    make = maker(steps)
    stored = make.stored(played(seed))
    found = make.expand(stored)
    assert (found["steps"] == stored["span"].abs()).all()
    assert ((found["discount"] > 0) == (stored["span"] > 0)).all()
    names = ("observation", "next_observation", "action", "reward")
    assert (found.select(*names) == stored.select(*names)).all()


@pytest.mark.parametrize("steps", [0, 128])
def test_windows_that_cannot_be_stored_are_refused(steps):
    with pytest.raises(ValueError, match=f"1 to 127 steps, got {steps}"):
        maker(steps)
