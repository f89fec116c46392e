"""A replay keeps the newest, costs what it says, and draws the same after a save as without one."""

import gc
import os

import pytest
import torch
from tests.data.robots import played

from edgewise.data import replay_buffer as module
from edgewise.data.replay_buffer import ReplayBuffer
from edgewise.data.transitions import Transitions
from edgewise.runs.checkpoint import segments
from edgewise.runs.checkpoint import store as checkpoint

KINDS = [(storage, prioritised) for storage in ("memory", "memmap") for prioritised in (False, True)]
every_kind = pytest.mark.parametrize(("storage", "prioritised"), KINDS)


def transitions(seed=0, **changes):
    return Transitions(per_agent=True, discount=0.9).stored(played(seed, slots=5, **changes))


def made(storage="memory", prioritised=False, *, capacity=100, seed=0, batch_size=16):
    return ReplayBuffer(capacity, batch_size=batch_size, storage=storage, prioritised=prioritised, seed=seed)


def run(replay, *, rounds=4, begin=0):
    """Store, draw and update; what was drawn."""
    drawn = []
    for number in range(begin, begin + rounds):
        replay.extend(transitions(number))
        sample = replay.sample()
        replay.update_priorities(sample["index"], sample["reward"].abs())
        drawn.append(sample.clone())
    return drawn


@every_kind
def test_what_is_drawn_is_what_was_stored(storage, prioritised):
    replay, stored = made(storage, prioritised), transitions()
    replay.extend(stored)
    sample = replay.sample()
    assert len(replay) == len(stored)
    assert (sample.exclude("index", "weight") == stored[sample["index"]]).all()
    assert sample["weight"].dtype == torch.float32
    assert sample["weight"].max() == 1


@pytest.mark.parametrize("storage", ["memory", "memmap"])
def test_weights_correct_for_unequal_priorities(storage):
    """Against the formula: the ratio of probabilities to the power of -beta, at most 1."""
    replay, stored = made(storage, prioritised=True, batch_size=64), transitions()
    replay.extend(stored)
    priority = torch.linspace(0.1, 2.0, len(stored))
    replay.update_priorities(torch.arange(len(stored)), priority)
    sample = replay.sample()
    expected = (priority[sample["index"]] + 1e-6) ** (-0.5 * 0.4)
    assert sample["weight"].unique().numel() > 1
    torch.testing.assert_close(sample["weight"], expected / expected.max(), rtol=1e-3, atol=0.0)


@every_kind
def test_a_transition_takes_279_bytes(storage, prioritised):
    replay = made(storage, prioritised)
    assert replay.bytes_per_transition == 0
    replay.extend(transitions())
    assert replay.bytes_per_transition == 279


def test_the_newest_replace_the_oldest():
    replay = made(capacity=30)
    every = torch.cat([transitions(number) for number in range(4)])
    for part in every.split(7):
        replay.extend(part)
    kept = replay.state_dict()["stored"]["reward"]
    assert sorted(kept.tolist()) == sorted(every["reward"][-30:].tolist())


def test_more_than_fits_leaves_the_newest():
    replay, every = made(capacity=5), transitions()
    assert len(every) > 5
    replay.extend(every)
    assert sorted(replay.state_dict()["stored"]["reward"].tolist()) == sorted(every["reward"][-5:].tolist())


def test_nothing_new_is_no_trouble():
    replay = made()
    replay.extend(transitions()[:0])
    assert len(replay) == 0


@every_kind
@pytest.mark.parametrize("capacity", [40, 1000], ids=["full", "filling"])
def test_it_goes_on_bit_for_bit_from_a_saved_state(storage, prioritised, capacity, tmp_path):
    first = made(storage, prioritised, capacity=capacity)
    run(first)
    path = checkpoint.save(tmp_path, {"replay": first.state_dict()}, step=1)
    second = made(storage, prioritised, capacity=capacity, seed=9)
    run(second, rounds=1)
    second.load_state_dict(checkpoint.load(path)["replay"])
    for one, other in zip(run(first, begin=4), run(second, begin=4), strict=True):
        assert (one == other).all()


PLANTS = {
    "another cursor": lambda state: state.__setitem__("cursor", 3),
    "another order": lambda state: state["generator"].copy_(torch.Generator().manual_seed(5).get_state()),
    "no priorities": lambda state: state["sampler"]["priorities"].fill_(1.0),
    "another largest": lambda state: state["sampler"]["largest"].fill_(50.0),
    "another reward": lambda state: state["stored"]["reward"].zero_(),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_whatever_is_not_kept_would_show(plant):
    first, second = made(prioritised=True), made(prioritised=True)
    run(first)
    state = first.state_dict()
    PLANTS[plant](state)
    second.load_state_dict(state)
    pairs = zip(run(first, begin=4), run(second, begin=4), strict=True)
    assert not all((one == other).all() for one, other in pairs)


def test_a_state_is_a_snapshot_of_small_entries():
    replay = made(prioritised=True, capacity=40)
    run(replay, rounds=1)
    state = replay.state_dict()
    before = state["stored"]["reward"].clone()
    run(replay, begin=1)
    assert torch.equal(state["stored"]["reward"], before)


def test_a_state_that_does_not_fit_is_refused():
    replay = made(capacity=40)
    run(replay)
    with pytest.raises(ValueError, match="holds 40 transitions, more than the capacity 10"):
        made(capacity=10).load_state_dict(replay.state_dict())


@pytest.mark.parametrize("storage", ["memory", "memmap"])
def test_a_checkpoint_rewrites_only_the_segments_that_were_written_to(storage, tmp_path, monkeypatch):
    """A ring of ten segments of objects, of which the second save has touched one or two."""
    rows = 256
    monkeypatch.setattr(segments, "LARGE", rows * 100)
    monkeypatch.setattr(module, "SNAPSHOT_BYTES", rows * 100)
    replay = made(storage, capacity=10 * rows)
    while len(replay) < 10 * rows:
        replay.extend(transitions(len(replay), worlds=8, steps=20))
    old = checkpoint.save(tmp_path, {"replay": replay.state_dict()}, step=1)
    between = checkpoint.save(tmp_path, {"replay": replay.state_dict()}, step=2)
    replay.extend(transitions(1)[: rows // 4])
    new = checkpoint.save(tmp_path, {"replay": replay.state_dict()}, step=3)
    inodes = [{os.stat(path).st_ino for path in folder.glob("segment-*")} for folder in (between, new)]
    assert not inodes[0] & inodes[1]
    shared = {path.name for path in old.glob("segment-*")} & {path.name for path in new.glob("segment-*")}
    written = {path.name for path in new.glob("segment-*")} - shared
    assert 1 <= len(written) <= 2 * 2
    assert len(shared) >= 2 * 8
    assert all(os.stat(new / name).st_nlink > 1 for name in shared)


def test_the_files_of_a_mapped_store_go_with_it(tmp_path):
    replay = ReplayBuffer(50, batch_size=4, storage="memmap", folder=tmp_path / "new")
    replay.extend(transitions())
    assert list((tmp_path / "new").rglob("*.memmap"))
    del replay
    gc.collect()
    assert not list((tmp_path / "new").rglob("*.memmap"))


def test_a_state_of_a_larger_buffer_is_refused():
    large, small = made(capacity=100), made(capacity=30)
    large.extend(torch.cat([transitions(number) for number in range(4)])[:45])
    with pytest.raises(ValueError, match="45 transitions, more than the capacity 30"):
        small.load_state_dict(large.state_dict())


@every_kind
def test_the_seed_decides_what_is_drawn(storage, prioritised):
    drawn = []
    for seed in (3, 3, 4):
        replay = made(storage, prioritised, seed=seed)
        replay.extend(torch.cat([transitions(number) for number in range(3)])[:90])
        drawn.append(replay.sample()["index"])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
