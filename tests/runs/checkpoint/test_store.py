"""Checkpoints: what goes in comes out, the newest whole one is found, old ones go, the best stays."""

import errno
import json
import logging
import os
import random
import resource
import signal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.states import in_a_new_process, little_memory, same, states

from edgewise.config.errors import CheckpointError
from edgewise.runs.checkpoint import segments
from edgewise.runs.checkpoint import store as checkpoint


def example(step: int = 0) -> dict:
    generator = torch.Generator().manual_seed(step)
    return {
        "algorithm": {
            "actor": {"weight": torch.randn(3, 4, generator=generator), "bias": torch.zeros(0)},
            "optimiser": {
                "state": {0: {"step": torch.tensor(3.0), "moment": torch.randn(3, 4)}},
                "groups": [1e-3],
            },
        },
        "random": {"torch": generator.get_state(), "python": list(random.Random(step).getstate()[1])},
        "counters": {"frames": step, "best": None, "value": float("nan")},
    }


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True), states(), max_size=3))
def test_round_trip(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("run")
    path = checkpoint.save(folder, state, step=7)
    assert path.name == "step-000000000007"
    assert same(checkpoint.load(path), state)


def test_random_generators_go_on_where_they_stopped(tmp_path):
    generator, dice = torch.Generator().manual_seed(5), random.Random(5)
    torch.randn(13, generator=generator), dice.random()
    state = {"random": {"torch": generator.get_state(), "python": dice.getstate()}}
    loaded = checkpoint.load(checkpoint.save(tmp_path, state, step=1))["random"]
    other, other_dice = torch.Generator(), random.Random()
    other.set_state(loaded["torch"])
    other_dice.setstate(loaded["python"])
    assert torch.equal(torch.randn(9, generator=generator), torch.randn(9, generator=other))
    assert dice.random() == other_dice.random()


def test_one_part_is_loaded_without_reading_the_others(tmp_path):
    path = checkpoint.save(tmp_path, example(3), step=3)
    file = path / "random.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert same(
        checkpoint.load(path, parts=["algorithm"])["algorithm"]["actor"], example(3)["algorithm"]["actor"]
    )
    with pytest.raises(CheckpointError, match="it has no part replay"):
        checkpoint.load(path, parts=["replay"])
    with pytest.raises(CheckpointError, match=r"random\.safetensors does not match"):
        checkpoint.load(path)


def test_the_newest_stay_and_so_does_the_best(tmp_path):
    for step in range(10, 70, 10):
        checkpoint.save(tmp_path, example(step), step=step, keep_last=2, keep={20})
    assert [checkpoint.step_of(path) for path in checkpoint.saved(tmp_path)] == [20, 50, 60]
    assert checkpoint.best(tmp_path) == checkpoint.latest(tmp_path) == tmp_path / "step-000000000060"
    checkpoint.mark_best(tmp_path, 20, metric="return", value=0.5)
    assert checkpoint.best(tmp_path) == tmp_path / "step-000000000020"
    assert json.loads((tmp_path / "best.json").read_text())["value"] == 0.5


def test_a_note_of_the_best_that_cannot_be_read_is_replaced_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "best.json")
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("waited for a pipe"))
    signal.alarm(10)
    try:
        assert checkpoint.mark_best(tmp_path, 20, metric="return", value=0.5)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert json.loads((tmp_path / "best.json").read_text())["value"] == 0.5
    assert not checkpoint.mark_best(tmp_path, 20, metric="return", value=0.5)


def test_a_note_of_the_best_that_leads_elsewhere_is_refused(tmp_path):
    (tmp_path / "best.json").write_text('{"checkpoint": "../../etc"}')
    with pytest.raises(CheckpointError, match="names no checkpoint"):
        checkpoint.best(tmp_path)


def test_the_newest_whole_one_is_found_past_damaged_ones(tmp_path, caplog):
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, example(step), step=step)
    (tmp_path / "step-000000000003" / "algorithm.safetensors").unlink()
    (tmp_path / "step-000000000002" / "state.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert checkpoint.latest(tmp_path) == tmp_path / "step-000000000001"
    assert "algorithm.safetensors is missing" in caplog.text
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(tmp_path / "step-000000000003")
    assert str(error.value).count("\n") == 0
    assert "algorithm.safetensors is missing" in str(error.value)
    assert str(tmp_path / "step-000000000001") in str(error.value)


def test_no_checkpoint_at_all_is_said(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(CheckpointError, match="no usable checkpoint"):
            checkpoint.latest(folder)
    with pytest.raises(CheckpointError, match="No such file"):
        checkpoint.load(tmp_path / "step-000000000001")


def test_left_over_stages_are_cleaned_and_never_taken_for_checkpoints(tmp_path):
    stale = tmp_path / ".stage-step-000000000009"
    stale.mkdir()
    (stale / "algorithm.safetensors").write_bytes(b"half")
    (tmp_path / ".stage-link").symlink_to("/")
    assert checkpoint.saved(tmp_path) == []
    checkpoint.save(tmp_path, example(), step=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000001"]


def test_a_whole_checkpoint_of_the_same_step_stays_and_a_damaged_one_is_replaced(tmp_path):
    path = checkpoint.save(tmp_path, example(1), step=1)
    before = path.stat().st_ino
    assert checkpoint.save(tmp_path, example(1), step=1).stat().st_ino == before
    (path / "state.json").write_text("{}")
    assert same(
        checkpoint.load(checkpoint.save(tmp_path, example(1), step=1))["counters"], example(1)["counters"]
    )


def test_what_lies_ahead_of_an_older_checkpoint_is_set_aside(tmp_path):
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, example(step), step=step)
    for attempt in (0, 1):
        moved = checkpoint.set_aside(tmp_path, newer_than=1)
        assert [path.name for path in moved] == [f"aside-step-00000000000{step}-{attempt}" for step in (2, 3)]
        assert checkpoint.latest(tmp_path) == tmp_path / "step-000000000001"
        for step in (2, 3):
            checkpoint.save(tmp_path, example(step), step=step)


def test_a_full_disk_is_said_in_one_line_and_costs_nothing(tmp_path):
    whole = checkpoint.save(tmp_path, example(1), step=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(CheckpointError) as error:
            checkpoint.save(tmp_path, {"algorithm": torch.zeros(10_000)}, step=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "step-000000000001 is unchanged" in str(error.value)
    assert str(error.value).count("\n") == 0
    assert list(tmp_path.iterdir()) == [whole]
    assert same(checkpoint.load(whole)["counters"], example(1)["counters"])


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "read-only"), (errno.EACCES, "no permission")],
)
def test_each_failure_of_the_system_has_its_remedy(tmp_path, monkeypatch, number, words):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointError, match=words) as error:
        checkpoint.save(tmp_path, example(), step=1)
    assert error.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write into a read-only folder")
def test_a_folder_without_permission_is_said(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="no permission to write"):
        checkpoint.save(tmp_path / "run", example(), step=1)


def test_a_file_where_the_folder_should_be_is_said(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(CheckpointError, match="cannot save"):
        checkpoint.save(tmp_path / "run", example(), step=1)


def test_a_part_is_named_like_a_file(tmp_path):
    with pytest.raises(TypeError, match="is called"):
        checkpoint.save(tmp_path, {"../escape": 1}, step=1)
    assert list(tmp_path.iterdir()) == []


def shared(one, other):
    """How many segments of two checkpoints are the same file."""
    inodes = [{file.stat().st_ino for file in path.glob("segment-*")} for path in (one, other)]
    return len(inodes[0] & inodes[1])


def flip(file):
    """Flip one bit in the middle of a file, in place."""
    with open(file, "r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)[0]
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 8]))


class TestLargeTensors:
    """Segments: cut, shared between checkpoints, put together again."""

    @pytest.fixture(autouse=True)
    def _small_segments(self, monkeypatch):
        monkeypatch.setattr(segments, "LARGE", 256)

    def replay(self) -> torch.Tensor:
        return torch.arange(16 * 64, dtype=torch.int16).view(16, 2, 32)

    def save(self, folder, step, **options):
        """Save a replay buffer one row of which changes with each step."""
        replay = self.replay()
        replay[3] += step
        path = checkpoint.save(
            folder, {"weights": torch.ones(3), "replay": {"x": replay}}, step=step, **options
        )
        assert same(checkpoint.load(path)["replay"]["x"], replay)
        return path

    def test_what_did_not_change_is_linked_to_the_last_but_one(self, tmp_path):
        first, second, third = (self.save(tmp_path, step) for step in (1, 2, 3))
        assert shared(first, third) == 7
        assert shared(first, second) == shared(second, third) == 0

    @pytest.mark.parametrize("keep_last", [2, 3, 5])
    @pytest.mark.parametrize("best", [1, 2, 3, 4])
    def test_the_latest_shares_nothing_with_the_best_and_the_one_before(self, tmp_path, keep_last, best):
        linked = 0
        for step in range(1, 10):
            before = {file.stat().st_ino for file in tmp_path.glob("*/segment-*")}
            path = self.save(tmp_path, step, keep_last=keep_last, keep=(min(step, best),))
            others = [other for other in checkpoint.saved(tmp_path) if other != path]
            apart = [checkpoint.step_of(other) for other in others if not shared(other, path)]
            assert step == 1 or step - 1 in apart
            assert step <= best or best in apart
            linked += bool(before & {file.stat().st_ino for file in path.glob("segment-*")})
        assert linked >= 5

    def test_with_one_to_keep_all_is_linked(self, tmp_path):
        self.save(tmp_path, 1, keep_last=1)
        before = {file.stat().st_ino for file in (tmp_path / "step-000000000001").glob("segment-*")}
        second = self.save(tmp_path, 2, keep_last=1)
        assert len(before & {file.stat().st_ino for file in second.glob("segment-*")}) == 7

    def test_a_flipped_bit_is_neither_linked_nor_left(self, tmp_path, caplog):
        """A bit that flips in a file that several checkpoints share, as on a bad disk."""
        first, second, third = (self.save(tmp_path, step, keep_last=9) for step in (1, 2, 3))
        damaged = next(file for file in third.glob("segment-*") if file.stat().st_nlink == 2)
        flip(damaged)
        for path in (first, third):
            with pytest.raises(CheckpointError, match="does not match its SHA-256"):
                checkpoint.load(path)
        checkpoint.load(second)
        self.save(tmp_path, 4, keep_last=9)
        assert damaged.name not in caplog.text
        fifth = self.save(tmp_path, 5, keep_last=9)
        assert caplog.text.count(f"{damaged.name} is damaged") == 1
        assert same(checkpoint.load(fifth)["replay"]["x"][4:], self.replay()[4:])
        for path in (first, second, third):
            checkpoint.load(path)

    @pytest.mark.parametrize("spoil", ["flip", "cut", "remove"])
    def test_weights_load_whatever_happens_to_the_replay(self, tmp_path, spoil):
        path = self.save(tmp_path, 1)
        file = next(path.glob("segment-*"))
        {"flip": flip, "cut": lambda file: os.truncate(file, 9), "remove": os.unlink}[spoil](file)
        assert same(checkpoint.load(path, parts=("weights",)), {"weights": torch.ones(3)})
        assert checkpoint.latest(tmp_path, parts=("weights",)) == path
        for parts in (None, ("replay",)):
            with pytest.raises(CheckpointError, match="segment-"):
                checkpoint.load(path, parts=parts)
            with pytest.raises(CheckpointError, match="segment-"):
                checkpoint.latest(tmp_path, parts=parts)

    def test_weights_are_loaded_without_opening_the_replay(self, tmp_path, monkeypatch):
        self.save(tmp_path, 1)
        opened, plain = [], os.open
        monkeypatch.setattr(os, "open", lambda name, *rest: opened.append(str(name)) or plain(name, *rest))
        checkpoint.load(checkpoint.latest(tmp_path, parts=("weights",)), parts=("weights",))
        assert opened
        assert not [name for name in opened if "segment-" in name]

    def test_the_new_one_outlives_the_old(self, tmp_path):
        for step in (1, 2):
            path = checkpoint.save(tmp_path, {"replay": self.replay()}, step=step, keep_last=1)
        assert same(checkpoint.load(path)["replay"], self.replay())
        assert checkpoint.saved(tmp_path) == [path]

    def test_equal_segments_share_one_file(self, tmp_path):
        path = checkpoint.save(tmp_path, {"replay": torch.zeros(40, 64)}, step=1)
        assert len(list(path.glob("segment-*"))) == 1
        assert same(checkpoint.load(path)["replay"], torch.zeros(40, 64))

    def test_a_loaded_tensor_can_be_written_to_without_harm(self, tmp_path):
        path = checkpoint.save(tmp_path, {"replay": self.replay()}, step=1)
        checkpoint.load(path)["replay"].fill_(-1)
        assert same(checkpoint.load(path)["replay"], self.replay())

    def test_a_segment_in_the_wrong_place_is_refused(self, tmp_path):
        path = checkpoint.save(tmp_path, {"replay": self.replay()}, step=1)
        one, other = sorted(path.glob("segment-*"))[:2]
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
        with pytest.raises(CheckpointError, match="does not match its SHA-256"):
            checkpoint.load(path)

    def test_a_half_written_older_segment_is_not_linked(self, tmp_path):
        first = checkpoint.save(tmp_path, {"replay": self.replay()}, step=1)
        damaged = next(first.glob("segment-*"))
        damaged.write_bytes(damaged.read_bytes()[:-1])
        second = checkpoint.save(tmp_path, {"replay": self.replay()}, step=2)
        assert same(checkpoint.load(second)["replay"], self.replay())

    def test_views_and_odd_sizes_are_kept_too(self, tmp_path):
        state = {"replay": {"view": torch.randn(40, 30).t(), "odd": torch.randn(301, dtype=torch.float64)}}
        assert same(checkpoint.load(checkpoint.save(tmp_path, state, step=1)), state)


def save_and_load_a_mapped_replay(folder):
    size = segments.LARGE + 1000
    replay = torch.from_file(str(folder / "replay"), shared=True, size=size, dtype=torch.uint8)
    replay[-1] = 7
    with little_memory(segments.LARGE // 2):
        with pytest.raises(RuntimeError):
            replay.clone()
        path = checkpoint.save(folder / "checkpoints", {"replay": replay}, step=1)
        loaded = checkpoint.load(path)["replay"]
    assert torch.equal(loaded, replay)
    assert len(list(path.glob("segment-*"))) == 2


def test_a_mapped_replay_is_saved_and_loaded_without_a_copy_in_memory(tmp_path):
    in_a_new_process(save_and_load_a_mapped_replay, tmp_path)
