"""Starts and continues runs: parts, folder, trainer and report, in the order that loses nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.config.run import AnyRun
from edgewise.experiments.build import Builder
from edgewise.experiments.graph_record import refuse_changed_graphs, refuse_trained_graphs, write_graphs
from edgewise.experiments.imported import Weights, set_weights
from edgewise.experiments.load import load_config
from edgewise.experiments.memory_check import refuse_too_large
from edgewise.report.page import write_report
from edgewise.runs import durable
from edgewise.runs.code import accept_code, refuse_changes, warn_of_changes, write_code
from edgewise.runs.folder import RunFolder
from edgewise.runs.zoo import is_packed, read_card
from edgewise.scale.devices import check_device, refuse_out_of_memory
from edgewise.scale.division import refuse_other_processes, refuse_unequal_shares
from edgewise.scale.processes.group import ALONE, Group, device_of, this_group
from edgewise.scale.processes.ranks import place_of_this_process
from edgewise.training.callbacks import Callback, checked_callbacks
from edgewise.training.parts import HasClose, Parts
from edgewise.training.trainer import Trainer

RUNS = Path("runs")
"""Where run folders go unless a place is given."""

REPORT = "report.html"

ATTEMPTS = 1000
"""How often another number is tried for a run folder that somebody else creates at the same moment."""

log = logging.getLogger(__name__)


def start(config: AnyRun, *, folder: Path | None = None, callbacks: Sequence[Callback] = ()) -> Path:
    """Train to the end, and return the run folder; together with the other processes, if there are any.

    Args:
        config: of the run.
        folder: a path that does not exist yet; the next free number under `runs/` if not given.
        callbacks: called at the start, after each batch, evaluation and checkpoint, and at the end.
    """
    callbacks = checked_callbacks(callbacks)
    refuse_trained_graphs(config.env, config.evaluation.settings)
    group = this_group()
    config = with_processes(config, group)
    parts = make_parts(config, group)
    with _closing(parts):
        run = RunFolder(group.broadcast(str(_new_run(config, folder)) if group.first else None))
        log.info("run folder: %s", run.path)
        with run.locked() if group.first else nullcontext():
            _drive(Trainer(config, parts, run, callbacks=callbacks, group=group), run, group)
    return run.path


def start_from(config: AnyRun, weights: Weights, *, folder: Path | None = None) -> Path:
    """Create a run whose networks have given weights, evaluate it untrained, and return its folder.

    Args:
        config: of the run.
        weights: tensors by their name in the algorithm's networks; others keep their initial values.
        folder: as in `start`.

    Raises:
        ConfigError: a name or a shape does not fit the networks.
    """
    parts = make_parts(config)
    set_weights(parts.algorithm, weights)
    run = RunFolder(_new_run(config, folder))
    with run.locked():
        Trainer(config, parts, run).begin()
    _report(run)
    return run.path


def resume(
    folder: Path,
    *,
    checkpoint: Path | None = None,
    flags: Sequence[tuple[str, str | None]] = (),
    keywords: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    accept_changed_code: bool = False,
) -> Path:
    """Continue a run from a checkpoint, and return its folder.

    Args:
        folder: of the run.
        checkpoint: where to go back to; the newest whole one if not given.
        flags: changes to its config as typed, such as `("--total-frames", "1e6")`; its folder keeps them.
        keywords: the same from Python.
        callbacks: as in `start`.
        accept_changed_code: whether to continue with code of the user's that has changed since.
    """
    callbacks = checked_callbacks(callbacks)
    run = RunFolder(folder)
    if is_packed(run.path):
        raise ConfigError(
            f"{run.path.name} is packed: its policy can act, but training cannot continue from it",
            hint=f"train it again: {read_card(run.path).command}",
        )
    run.warn_of_damage()
    own = load_config(run.config_file)
    wanted = own.training.total_frames
    (warn_of_changes if accept_changed_code else refuse_changes)(own, run.path)
    config = load_config(run.config_file, flags=flags, keywords=keywords)
    if config.threads != own.threads:
        log.warning(
            "%d threads instead of %d: sums are rounded in another order, so results differ from those of an "
            "uninterrupted run",
            config.threads,
            own.threads,
        )
    refuse_changed_graphs(config, run.path)
    group = this_group()
    refuse_other_processes(folder, then=own.processes, now=group.size)
    config = with_processes(config, group)
    parts = make_parts(config, group)
    with _closing(parts), run.locked() if group.first else nullcontext():
        trainer = Trainer(config, parts, run, callbacks=callbacks, group=group)
        restored = trainer.restore(checkpoint)
        if config.training.total_frames < min(wanted, trainer.frames):
            raise ConfigError(
                f"{folder}: {trainer.frames:,} frames are trained, "
                f"more than the {config.training.total_frames:,} wanted",
                hint="give more with --total-frames, or go back with --checkpoint",
            )
        if accept_changed_code and group.first:
            accept_code(config, run.path)
        log.info("continuing from %s", "the beginning" if restored is None else restored)
        if config != own and group.first:
            durable.replace_whole(run.config_file, json.dumps(config.to_plain(), indent=2).encode())
        _drive(trainer, run, group)
    return run.path


def with_processes(config: AnyRun, group: Group) -> AnyRun:
    """Return the config with the number of processes that there are.

    Raises:
        ConfigError: it asks for another number, or their shares are not equal.
    """
    if config.processes not in (1, group.size):
        raise ConfigError(
            f"processes: got {config.processes}, but there are {group.size}",
            hint="`edgewise train --processes` and `edgewise resume` start them on this machine, as does "
            f"`torchrun --nproc-per-node {config.processes}`",
        )
    config = config.model_copy(update={"processes": group.size})
    refuse_unequal_shares(config)
    return config


def _new_run(config: AnyRun, folder: Path | None) -> Path:
    run = create_folder(config, folder)
    write_code(config, run.path)
    write_graphs(config, run.path)
    return run.path


def make_parts(config: AnyRun, group: Group = ALONE) -> Parts:
    """Build the parts of a run, with its workers if it has any."""
    torch.set_num_threads(config.threads)
    check_device(config.device)
    refuse_too_large(config)
    with refuse_out_of_memory("this run", hint="lower training.num_envs, or the size of the model"):
        device = device_of(config.device, place_of_this_process())
        parts = Builder(config.model_copy(update={"device": device}), group=group).parts()
    if config.workers:
        from edgewise.scale.workers.sharding import with_workers

        parts = with_workers(parts, config, group=group)
    return parts


@contextmanager
def _closing(parts: Parts) -> Iterator[None]:
    """End the workers of a run with the body."""
    try:
        yield
    finally:
        if isinstance(parts.rollout, HasClose):
            parts.rollout.close()


def create_folder(config: AnyRun, folder: Path | None) -> RunFolder:
    """Create the run folder; without a path, the next free number, also where runs are started at once."""
    if folder is not None:
        return RunFolder.create(folder, config.to_plain())
    for _ in range(ATTEMPTS):
        path = next_folder(config.name)
        try:
            return RunFolder.create(path, config.to_plain())
        except ConfigError:
            if not path.exists():
                raise
    raise ConfigError(f"no free folder for {config.name} under {RUNS}", hint="give one with --out")


def next_folder(name: str, *, within: Path = RUNS) -> Path:
    """Return the first folder `name-1`, `name-2`, … that does not exist yet."""
    return next(path for number in count(1) if not (path := within / f"{name}-{number}").exists())


def _drive(trainer: Trainer, run: RunFolder, group: Group) -> None:
    """Train, and write the report however that ends."""
    try:
        trainer.run()
    except EdgewiseError:
        if group.first:
            _report(run)
        raise
    if group.first:
        _report(run)


def _report(run: RunFolder) -> None:
    """Write the report; a failure is logged, and never loses the run."""
    try:
        write_report(run.path)
    except (EdgewiseError, OSError, ValueError) as error:
        log.warning("the report could not be written: %s", error)
