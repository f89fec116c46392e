"""A replay buffer of ragged entries gives what one of padded entries gives, whatever is overwritten."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict

from edgewise.data.replay_buffer import ReplayBuffer
from edgewise.graphs.ragged import Ragged, padded, ragged


def transitions(count, *, slots=30, seed=0, is_ragged=True):
    """Transitions with node features, edge ends and a reward."""
    generator = torch.Generator().manual_seed(seed)
    values = {"reward": torch.rand(count, generator=generator)}
    used = torch.randint(0, slots, (count,), generator=generator)
    for name, place in (("x", 0), ("ends", 1)):
        exists = (torch.arange(slots) < used.unsqueeze(-1)).unsqueeze(-1)
        value = torch.rand(count, slots, 2, generator=generator).masked_fill(~exists, 0.0)
        value = value.movedim(-2, -1) if place else value
        values[name] = ragged(value, used, place=place) if is_ragged else value
        used = (used * 2 % slots) if place == 0 else used
    seen = TensorDict({name: values[name] for name in ("x", "ends")}, [count])
    return TensorDict({"observation": seen, "reward": values["reward"]}, [count])


@given(
    capacity=st.integers(1, 12),
    counts=st.lists(st.integers(1, 15), min_size=1, max_size=8),
    switch=st.integers(0, 8),
)
def test_samples_equal_those_of_padded_entries(capacity, counts, switch):
    mine, plain = (ReplayBuffer(capacity, batch_size=20, seed=3) for _ in range(2))
    for number, count in enumerate(counts):
        fresh = transitions(count, seed=number)
        mine.extend(fresh if number != switch or number == 0 else padded(fresh))
        plain.extend(padded(fresh))
        found, expected = mine.sample(), plain.sample()
        assert isinstance(found["observation", "x"], Ragged)
        assert (padded(found) == expected).all()


def test_a_restored_buffer_goes_on_alike():
    mine, again = (ReplayBuffer(10, batch_size=20, seed=3) for _ in range(2))
    for number in range(3):
        mine.extend(transitions(7, seed=number))
    again.load_state_dict(mine.state_dict())
    for number in range(3, 6):
        for replay in (mine, again):
            replay.extend(transitions(4, seed=number))
        assert (padded(mine.sample()) == padded(again.sample())).all()


def test_bytes_are_those_of_the_slots_in_use():
    mine, plain = (ReplayBuffer(50, batch_size=4) for _ in range(2))
    fresh = transitions(40, slots=1000)
    fresh["observation", "x"].used.clamp_(max=3)
    fresh["observation", "ends"].used.clamp_(max=3)
    mine.extend(fresh)
    plain.extend(padded(fresh))
    assert mine.bytes_per_transition < 100
    assert plain.bytes_per_transition > 15_000


@pytest.mark.parametrize("storage", ["memory", "memmap"])
def test_padded_first_stays_padded(storage):
    replay = ReplayBuffer(10, batch_size=20, seed=3, storage=storage)
    replay.extend(padded(transitions(5)))
    replay.extend(transitions(5, seed=1))
    assert not isinstance(replay.sample()["observation", "x"], Ragged)


def test_a_file_holds_padded_entries():
    replay, plain = (ReplayBuffer(10, batch_size=20, seed=3, storage="memmap") for _ in range(2))
    replay.extend(transitions(5))
    plain.extend(padded(transitions(5)))
    assert (replay.sample() == plain.sample()).all()
