"""What the trainer saves and when, and the numbers with which a batch begins."""

import csv

import pytest
import torch
from tests.runs.states import same
from tests.training.test_trainer import scoring
from tests.training.toys import run, toy_config, toy_parts

from edgewise.runs.checkpoint import store


def test_a_new_best_is_saved_at_once_and_kept(tmp_path):
    """Nothing else is a reason to save before the end, and only the newest would stay."""
    config = toy_config(evaluation={"every": 16}, checkpoint={"every": None, "keep_last": 1})
    folder = run(tmp_path / "run", config, parts=scoring(config, [1, 9, 2, 3, 4, 4, 5])).checkpoints
    assert [store.step_of(path) for path in store.saved(folder)] == [16, 96]
    assert store.step_of(store.best(folder)) == 16


def test_what_was_drawn_before_a_run_does_not_matter(tmp_path):
    found = []
    for seed in (7, 8):
        config = toy_config(total_frames=32)
        parts = toy_parts(config)
        torch.manual_seed(seed)
        folder = run(tmp_path / str(seed), config, parts=parts)
        state = store.load(store.latest(folder.checkpoints))
        found.append({name: part for name, part in state.items() if name != "clock"})
    assert same(*found)


def test_a_batch_is_learnt_with_the_schedule_of_its_beginning(tmp_path):
    schedule = {"learning_rate": {"kind": "linear", "start": 0.1, "end": 0.0, "frames": 96}}
    folder = run(tmp_path / "run", toy_config(training={"schedules": schedule}))
    with open(folder.path / "metrics.csv", newline="") as file:
        rates = [row["schedule/learning_rate"] for row in csv.DictReader(file)]
    assert [float(rate) for rate in rates if rate] == pytest.approx([0.1 * (1 - k / 6) for k in range(6)])
