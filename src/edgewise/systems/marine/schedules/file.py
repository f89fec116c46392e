"""Translate schedule files into runs of the marine recipes; `document.py` defines the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from edgewise.config.documents import read
from edgewise.config.layers import Layer, Problem, config_error
from edgewise.config.loading import resolve
from edgewise.config.run import AnyRun
from edgewise.config.schedules import Constant, Linear
from edgewise.config.wording import did_you_mean
from edgewise.experiments.load import load_config
from edgewise.systems.marine.recipes.stages import EVALUATION_SEED
from edgewise.systems.marine.schedules.document import Schedule, ScheduleDocument

AGENTS = ("AC-IQN", "IQN", "DDPG", "DQN", "SAC", "Rainbow")
EXPERT = "apf"
"""Expert of `imitation_learning`."""
LONGEST = 1000
"""Steps of an episode in a schedule file, in training and in evaluation."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a schedule file.

    Args:
        layer: settings of the run; `recipe` is the recipe that they change.
        folder: the folder in which the run folder is created.
    """

    layer: Layer
    folder: Path


def load_schedules(file: Path, *, flags: Sequence[tuple[str, str | None]] = ()) -> list[tuple[AnyRun, Path]]:
    """Return the config of every run of a schedule file, each with the folder of its run folder.

    Args:
        file: a JSON file.
        flags: settings that change every run, as in `load_config`.

    Raises:
        ConfigError: with file, line and field of every invalid value.
    """
    return [
        (load_config(run.layer.values["recipe"], file=run.layer, flags=flags), run.folder)
        for run in planned_runs(read(file))
    ]


def planned_runs(layer: Layer) -> list[PlannedRun]:
    """Return every run of a schedule file: all combinations, agents first, then seeds.

    Raises:
        ConfigError: with file, line and field of every invalid value.
    """
    document = resolve(ScheduleDocument, [layer])
    _known_agents(document, layer)
    choices = product(
        document.agent_type,
        document.seed,
        document.total_timesteps,
        document.eval_freq,
        document.imitation_learning,
        document.save_dir,
    )
    return [
        PlannedRun(
            _run(
                document,
                layer,
                agent=agent,
                seed=seed,
                total=total,
                every=every,
                imitates=imitates,
            ),
            Path(folder),
        )
        for agent, seed, total, every, imitates, folder in choices
    ]


def _known_agents(document: ScheduleDocument, layer: Layer) -> None:
    known = {name.lower() for name in AGENTS}
    unknown = [name for name in document.agent_type if name.lower() not in known]
    if unknown:
        path = ("agent_type",)
        reason = f"got {', '.join(unknown)}; {did_you_mean(unknown[0], list(AGENTS))}"
        raise config_error([Problem(layer.origin(path), path, reason)])


def _run(
    document: ScheduleDocument,
    layer: Layer,
    *,
    agent: str,
    seed: int,
    total: int,
    every: int,
    imitates: bool,
) -> Layer:
    """Build one run as settings of its recipe; each setting keeps its line in the file as origin."""
    name = f"marine-{agent.lower()}"
    training, measured = document.training_schedule, document.eval_schedule
    epsilon = Constant(value=0.0) if imitates else Linear(start=0.6, end=0.05, frames=max(1, total // 4))
    values: dict[str, Any] = {
        "recipe": name,
        "name": f"{name}-seed{seed}",
        "seed": seed,
        "env": training.settings(0) | _room(training, measured) | {"max_steps": LONGEST},
        "algorithm": _imitation() if imitates else {},
        "training": {
            "total_frames": total,
            "schedules": {"epsilon": epsilon.to_plain()},
            "curriculum": _curriculum(document),
        },
        "evaluation": {
            "every": every,
            "seed": EVALUATION_SEED,
            "settings": {"max_steps": LONGEST},
            "stages": [
                {
                    "name": f"{index + 1}-{measured.name(index)}",
                    "episodes": episodes,
                    "settings": measured.settings(index),
                }
                for index, episodes in enumerate(measured.num_episodes)
            ],
        },
        "checkpoint": {"every": every},
    }
    return Layer(layer.name, values, _origins(document, layer))


def _curriculum(document: ScheduleDocument) -> list[dict[str, Any]]:
    """Build the stages of the curriculum; the last one has no end."""
    schedule = document.training_schedule
    lengths: list[int | None] = [later - earlier for earlier, later in pairwise(schedule.timesteps)]
    return [
        {
            "name": f"{index + 1}-{schedule.name(index)}",
            "env": schedule.settings(index),
            "until": None if length is None else {"frames": length},
        }
        for index, length in enumerate([*lengths, None])
    ]


def _room(*schedules: Schedule) -> dict[str, int]:
    """Return the capacities that fit the largest worlds of all schedules."""
    return {
        f"max_{kind}": max(max(getattr(schedule, f"num_{kind}")) for schedule in schedules)
        for kind in ("robots", "cores", "obstacles")
    }


def _imitation() -> dict[str, Any]:
    """Return the settings with which the expert always acts and learning starts at once."""
    return {"expert": EXPERT, "expert_share": 1.0, "learning_starts": 0}


def _origins(document: ScheduleDocument, layer: Layer) -> dict[tuple[str | int, ...], str]:
    """Map settings with another name in the file to their line and name there."""
    fields = Schedule.model_fields
    found: dict[tuple[str | int, ...], str] = {}
    sections: Sequence[tuple[str, int, tuple[str, str], str]] = (
        ("training_schedule", len(document.training_schedule.timesteps), ("training", "curriculum"), "env"),
        ("eval_schedule", len(document.eval_schedule.num_episodes), ("evaluation", "stages"), "settings"),
    )
    for section, count, place, inner in sections:
        for index in range(count):
            found[(*place, index, inner)] = f"{layer.origin((section,))}: {section}, stage {index + 1}"
            for field in fields:
                origin = layer.origin((section, field, index))
                found[(*place, index, inner, field)] = f"{origin}: {section}.{field}.{index}"
    for field in fields:
        found[("env", field)] = (
            f"{layer.origin(('training_schedule', field, 0))}: training_schedule.{field}.0"
        )
    for theirs, ours in (("seed", ("seed",)), ("total_timesteps", ("training", "total_frames"))):
        found[ours] = layer.origin((theirs,))
    return found
