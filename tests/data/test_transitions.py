"""Transitions are exactly those of active robots, n steps of one robot of one episode, across batches too."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from tests.data.robots import one_by_one, played, told

from edgewise.data.transitions import TransitionMaker, agent_transitions, compact, expand

GAMMA = 0.9


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
    make = TransitionMaker(steps=steps, discount=GAMMA)
    found = [row for part in batch.split(parts, dim=1) for row in told(make(part.clone()))]
    assert same(sorted(found), one_by_one(batch, steps=steps, discount=GAMMA))


@given(seed=st.integers(0, 10_000))
def test_one_step_transitions_are_the_steps_of_active_robots(seed):
    batch = played(seed)
    found = agent_transitions(batch, discount=GAMMA)
    assert len(found) == batch["agents", "active"].sum()
    assert (found["steps"] == 1).all()
    ended = batch["next", "agents", "terminated"] & batch["agents", "active"]
    assert (found["discount"] == 0).sum() == ended.sum()
    assert ended.any() or seed != 0


def dropped_terminals(batch, steps):
    found = agent_transitions(batch, steps=steps, discount=GAMMA)
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
    return agent_transitions(stream, steps=steps, discount=GAMMA)


def mixed_episodes(batch, steps):
    batch["next", "done"] = torch.zeros_like(batch["next", "done"])
    batch["next", "agents", "active"] = torch.ones_like(batch["next", "agents", "active"])
    return agent_transitions(batch, steps=steps, discount=GAMMA)


def timeouts_terminal(batch, steps):
    batch["next", "terminated"] = batch["next", "done"]
    return agent_transitions(batch, steps=steps, discount=GAMMA)


def ghosts_stored(batch, steps):
    batch["agents", "active"] = torch.ones_like(batch["agents", "active"])
    return agent_transitions(batch, steps=steps, discount=GAMMA)


@pytest.mark.parametrize(
    "plant", [dropped_terminals, interleaved_robots, mixed_episodes, timeouts_terminal, ghosts_stored]
)
def test_planted_faults_show(plant):
    expected = one_by_one(played(0), steps=3, discount=GAMMA)
    assert same(told(agent_transitions(played(0), steps=3, discount=GAMMA)), expected)
    found = plant(played(0), 3)
    here, there = found["observation", "self"], found["next_observation", "self"]
    strangers = bool((here[:, 1:3] != there[:, 1:3]).any())
    assert strangers or not same(told(found), expected)


def test_what_waits_survives_a_save():
    batch = played(3, steps=10)
    first, second = (TransitionMaker(steps=4, discount=GAMMA) for _ in range(2))
    first(batch[:, :5].clone())
    second.load_state_dict(first.state_dict())
    one, other = first(batch[:, 5:].clone()), second(batch[:, 5:].clone())
    assert (one == other).all()
    forgetful = TransitionMaker(steps=4, discount=GAMMA)
    assert len(forgetful(batch[:, 5:].clone())) < len(one)


def test_what_waits_is_not_overwritten_with_the_batch():
    batch = played(3, steps=10)
    whole, reused = (TransitionMaker(steps=4, discount=GAMMA) for _ in range(2))
    whole(batch[:, :5].clone())
    storage = batch[:, :5].clone()
    reused(storage)
    storage.zero_()
    assert (whole(batch[:, 5:].clone()) == reused(batch[:, 5:].clone())).all()


@pytest.mark.parametrize("discrete", [True, False])
def test_a_stored_transition_takes_279_bytes(discrete):
    """7 + 25 floats and 5 flags for each end, 8 bytes of action, a reward and a span."""
    stored = compact(agent_transitions(played(0, slots=5, discrete=discrete), steps=3, discount=GAMMA))
    leaves = stored[0].values(include_nested=True, leaves_only=True)
    assert sum(leaf.nbytes for leaf in leaves) == 279


@given(seed=st.integers(0, 10_000), steps=st.integers(1, 5))
def test_what_is_stored_comes_back(seed, steps):
    found = agent_transitions(played(seed), steps=steps, discount=GAMMA)
    back = expand(compact(found), discount=GAMMA)
    assert (back.exclude("span") == found).all()


@pytest.mark.parametrize("steps", [0, 128])
def test_windows_that_cannot_be_stored_are_refused(steps):
    with pytest.raises(ValueError, match=f"1 to 127 steps, got {steps}"):
        TransitionMaker(steps=steps, discount=GAMMA)
