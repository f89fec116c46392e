"""Packs the policy of a run into a small run folder: weights without the state of training, and a card."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from edgewise.config import files as run_files
from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.experiments.build import Builder
from edgewise.experiments.card import ablation_figures, figures_of, game_figures, training_command
from edgewise.experiments.evaluate import (
    WEIGHTS,
    Trained,
    load_trained,
    measure_ablations,
    measure_run,
    without_curriculum,
)
from edgewise.experiments.load import load_config
from edgewise.runs import digests as run_digests
from edgewise.runs import durable
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder
from edgewise.runs.zoo import CARD, AblationFigure, Card, Check, Figure, is_packed

COPIED = ("config.json", "versions.json", "code.json", "graphs.json", "graphs.safetensors", "events.jsonl")
TABLES = ("metrics.csv", "timing.csv")
ROWS = 200
"""Largest number of rows of a table that are kept."""
EVALUATIONS = 8
"""Largest number of evaluations that are kept, from the first to the last."""
REPLAY_BYTES = 120_000
"""Largest size of all replays that are kept."""
CHECK_EPISODES, CHECK_STEPS = 8, 50
"""Instances of the short evaluation in a card, and steps of its episodes at most."""

T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """What the card of a packed run says about the policy.

    Attributes:
        settings: combinations of environment settings to evaluate at.
        episodes: number of instances; as in the run's own evaluation if None.
        baselines: names of baselines, `all` for every one; opponents in games of two players.
        games: number of games against each opponent, in games of two players.
        ablations: what the policy is tried without.
        command: that prints these figures.
    """

    settings: Sequence[Mapping[str, Any]] = ({},)
    episodes: int | None = None
    baselines: Sequence[str] = ()
    games: int = 400
    ablations: Sequence[str] = ()
    command: str = ""


def pack(
    runs: Sequence[Path],
    folder: Path,
    *,
    measured: Measured,
    summary: str,
    which: str = "best",
    commit: str | None = None,
) -> Card:
    """Write the policy of the first run into a new folder, with a card that compares it with the others.

    Args:
        runs: run folders that differ in their seed; the first one is packed.
        folder: to write; must not exist. It appears when the packed policy has been compared with the run's.
        measured: the figures of the card.
        summary: what the policy does, in one line.
        which: `best` or `latest` checkpoint.
        commit: of edgewise that trained the run, where the run does not say so itself.

    Raises:
        ConfigError: the folder exists, or a run is packed already.
        CheckpointError: the packed policy does not act like the run's.
    """
    if os.path.lexists(folder):
        raise ConfigError(f"{folder} exists already", hint="choose another folder with --out")
    for run in runs:
        if is_packed(run):
            raise ConfigError(f"{run} is packed already", hint="give the run folder that it was made from")
    trained = load_trained(runs[0], which=which, device="cpu")
    card = _card(runs, trained, folder.name, measured=measured, summary=summary, which=which, commit=commit)
    stage = folder.with_name(f".{folder.name}.stage-{os.getpid()}")
    try:
        stage.mkdir(parents=True)
        _write(runs[0], stage, trained)
        _write_recorded(stage, CARD, (json.dumps(card.to_plain(), indent=1) + "\n").encode())
        again = _check(stage, which="best")
        if again != card.check:
            raise CheckpointError(f"the packed policy of {runs[0]} does not act like the run's")
        os.rename(stage, folder)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return card


def _card(
    runs: Sequence[Path],
    trained: Trained,
    name: str,
    *,
    measured: Measured,
    summary: str,
    which: str,
    commit: str | None,
) -> Card:
    config = trained.config
    figures: list[Figure] = []
    ablations: list[AblationFigure] = []
    is_game = trained.for_users().env.observation_spec.get("player", None) is not None
    if is_game and measured.ablations:
        raise ConfigError("ablations are measured by episodes, not by games of two players", hint="omit them")
    for settings in measured.settings:
        for index, run in enumerate(runs):
            shown = name if index == 0 else run.resolve().name
            if is_game:
                chosen = {**config.evaluation.settings, **settings}
                opponents = measured.baselines or config.evaluation.baselines
                figures += game_figures(
                    run, shown, settings=chosen, opponents=opponents, games=measured.games, which=which
                )
                continue
            found = measure_run(
                run,
                settings=settings,
                episodes=measured.episodes,
                which=which,
                baselines=measured.baselines if index == 0 else (),
                device="cpu",
            )
            figures += figures_of(found, name=shown)
        if measured.ablations:
            pairs = measure_ablations(
                runs[0],
                measured.ablations,
                settings=settings,
                episodes=measured.episodes,
                which=which,
                device="cpu",
            )
            ablations += ablation_figures(pairs)
    recorded = run_files.read_json(runs[0] / "versions.json").get("commit")
    return Card(
        name=name,
        summary=summary,
        environment=config.env_name,
        algorithm=config.algorithm_name,
        command=training_command(config),
        seed=config.seed,
        frames=trained.frames,
        commit=recorded or commit,
        measure=config.evaluation.metric,
        evaluated=measured.command,
        figures=tuple(figures),
        ablations=tuple(ablations),
        check=_check(runs[0], which=which),
    )


def _check(run: Path, *, which: str) -> Check:
    """Play the short evaluation of a card."""
    config = load_config(run / "config.json")
    limit = config.evaluation.settings.get("max_steps", getattr(config.env, "max_steps", None))
    settings = {"max_steps": CHECK_STEPS} if isinstance(limit, int) and limit > CHECK_STEPS else {}
    found = measure_run(
        run, settings=settings, episodes=CHECK_EPISODES, which=which, device="cpu", apart=False
    )[0]
    means = {name: interval.estimate for name, interval in found.summary().items()}
    return Check(episodes=CHECK_EPISODES, settings=settings, measures=means)


def _write(run: Path, stage: Path, trained: Trained) -> None:
    """Write everything of a packed run but its card."""
    for name in COPIED:
        if (run / name).is_file():
            _write_recorded(stage, name, run_files.read_bytes(run / name, largest=run_files.LARGEST_TABLE))
    for name in TABLES:
        if (run / name).is_file():
            _write_recorded(stage, name, _thinned(run_files.read_bytes(run / name)))
    for path in (*_kept_evaluations(run), *_kept_replays(run)):
        (stage / path.parent.name).mkdir(exist_ok=True)
        _write_recorded(stage, f"{path.parent.name}/{path.name}", run_files.read_bytes(path))
    folder = RunFolder(stage).checkpoints
    checkpoint.save(folder, _weights(trained), step=trained.frames)
    best = run / "checkpoints" / checkpoint.BEST
    if best.is_file() and run_files.read_json(best).get("checkpoint") == trained.checkpoint.name:
        _write_recorded(stage, f"checkpoints/{checkpoint.BEST}", run_files.read_bytes(best))


def _weights(trained: Trained) -> dict[str, Any]:
    """Return the state that a policy needs: no data, no target networks, an optimizer that took no step."""
    state: dict[str, Any] = dict(checkpoint.load(trained.checkpoint, parts=WEIGHTS))
    fresh = Builder(without_curriculum(trained.config), num_envs=1).algorithm.state_dict()
    algorithm = {name: value for name, value in state["algorithm"].items() if name != "targets"}
    if "optimizer" in algorithm and "optimizer" in fresh:
        algorithm["optimizer"] = fresh["optimizer"]
    return {"algorithm": algorithm, "trainer": {"identity": state["trainer"]["identity"]}}


def _write_recorded(stage: Path, name: str, content: bytes) -> None:
    durable.write_whole(stage / name, content)
    if run_digests.is_recorded(name):
        run_digests.record(stage, name, content)


def _thinned(table: bytes) -> bytes:
    """Return a table with at most `ROWS` rows, the last one included."""
    header, *rows = table.splitlines(keepends=True)
    return b"".join([header, *_spread(rows, ROWS)])


def _kept_evaluations(run: Path) -> Iterator[Path]:
    """Yield evaluations of baselines, and some of the policy from the first to the last."""
    files = sorted((run / "evaluations").glob("*.json"))
    baselines = [path for path in files if path.name.startswith("baseline")]
    yield from baselines
    yield from _spread([path for path in files if path not in baselines], EVALUATIONS)


def _kept_replays(run: Path) -> Iterator[Path]:
    """Yield the newest and the first episode, then others from the newest on, as far as there is room."""
    files = sorted((run / "replays").glob("*.json"), reverse=True)
    room = REPLAY_BYTES
    for path in dict.fromkeys([*files[:1], *files[-1:], *files]):
        if path.stat().st_size <= room:
            room -= path.stat().st_size
            yield path


def _spread(items: Sequence[T], count: int) -> list[T]:
    """Return at most `count` items at equal distances, the first and the last included."""
    if len(items) <= count:
        return list(items)
    return [items[round(index * (len(items) - 1) / (count - 1))] for index in range(count)]
