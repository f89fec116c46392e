"""Starts and continues runs: parts, folder, trainer and report, in the order that loses nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import torch

from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.experiments.recipe import AnyRun
from edgewise.training import durable
from edgewise.training.logging.progress import Watcher
from edgewise.training.parts import Collector, Parts
from edgewise.training.probe import choose_num_envs
from edgewise.training.run_folder import RunFolder
from edgewise.training.trainer import Trainer

RUNS = Path("runs")
"""Where run folders go unless a place is given."""

REPORT = "report.html"

PROBE_LENGTH = 8
"""Rollout length of the batches that are tried where `num_envs` is auto."""

log = logging.getLogger(__name__)


def start(config: AnyRun, *, folder: Path | None = None, watcher: Watcher | None = None) -> Path:
    """Train to the end, and return the run folder.

    Args:
        config: of the run.
        folder: a place that does not exist yet; the next free number under `runs/` if not given.
        watcher: is told how the run does.
    """
    config, parts = make_parts(config)
    run = RunFolder.create(folder or next_folder(config.name), config.to_plain())
    log.info("run folder: %s", run.path)
    with run.locked():
        _drive(Trainer(config, parts, run, watcher=watcher), run)
    return run.path


def resume(
    folder: Path,
    *,
    checkpoint: Path | None = None,
    flags: Sequence[tuple[str, str | None]] = (),
    watcher: Watcher | None = None,
) -> Path:
    """Continue a run from a checkpoint, and return its folder.

    Args:
        folder: of the run.
        checkpoint: where to go back to; the newest whole one if not given.
        flags: changes to its config, such as `("--total-frames", "1e6")`, which its folder then keeps.
        watcher: is told how the run does.
    """
    run = RunFolder(folder)
    wanted = load_config(run.config_file).training.total_frames
    config, parts = make_parts(load_config(run.config_file, flags=flags))
    with run.locked():
        trainer = Trainer(config, parts, run, watcher=watcher)
        restored = trainer.restore(checkpoint)
        if config.training.total_frames < min(wanted, trainer.frames):
            raise ConfigError(
                f"{folder}: {trainer.frames:,} frames are trained, "
                f"more than the {config.training.total_frames:,} wanted",
                hint="give more with --total-frames, or go back with --checkpoint",
            )
        log.info("going on from %s", "the beginning" if restored is None else restored)
        if flags:
            durable.replace_whole(run.config_file, json.dumps(config.to_plain(), indent=2).encode())
        _drive(trainer, run)
    return run.path


def make_parts(config: AnyRun) -> tuple[AnyRun, Parts]:
    """The parts of a run, and its config with everything chosen that it left open."""
    torch.set_num_threads(config.threads)
    if config.training.num_envs == "auto":

        def trial(num_envs: int) -> Collector:
            return Builder(config, num_envs=num_envs, rollout_length=PROBE_LENGTH).collector

        chosen = choose_num_envs(trial, steps=config.training.rollout_length)
        training = config.training.model_copy(update={"num_envs": chosen})
        config = config.model_copy(update={"training": training})
    return config, Builder(config).parts()


def next_folder(name: str, *, within: Path = RUNS) -> Path:
    """The first folder `name-1`, `name-2`, … that is not there yet."""
    return next(path for number in count(1) if not (path := within / f"{name}-{number}").exists())


def _drive(trainer: Trainer, run: RunFolder) -> None:
    """Trains, and leaves a report however that ends."""
    try:
        trainer.run()
    except EdgewiseError:
        _report(run)
        raise
    _report(run)


def _report(run: RunFolder) -> None:
    """Writes the report; a run that has come so far is never lost to its report."""
    from edgewise.report.page import write_report

    try:
        write_report(run.path)
    except (EdgewiseError, OSError, ValueError) as error:
        log.warning("the report could not be written: %s", error)
