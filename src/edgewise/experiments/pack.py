"""Packs the policy of a run into a small run folder: weights without the state of training, and a card."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.ablated_games import ablate_in_games
from edgewise.experiments.build import Builder
from edgewise.experiments.card import (
    ablation_figures,
    figures_of,
    figures_of_rows,
    game_figures,
    training_command,
)
from edgewise.experiments.evaluate import (
    WEIGHTS,
    Trained,
    evaluate_ablations,
    evaluate_run,
    load_trained,
    without_curriculum,
)
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.packing import write_packed, write_recorded
from edgewise.runs.zoo import CARD, AblationFigure, Card, Check, Figure, is_packed

CHECK_EPISODES, CHECK_STEPS = 8, 50
"""Instances of the short evaluation in a card, and steps of its episodes at most."""


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
        write_packed(runs[0], stage, _weights(trained), saved=trained.checkpoint)
        write_recorded(stage, CARD, (json.dumps(card.to_plain(), indent=1) + "\n").encode())
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
            request = EvaluationRequest(
                settings=settings, episodes=measured.episodes, checkpoint=which, device="cpu"
            )
            baselines = tuple(measured.baselines) if index == 0 else ()
            found = evaluate_run(run, replace(request, baselines=baselines))
            figures += figures_of(found, name=shown)
        if measured.ablations and is_game:
            chosen = {**config.evaluation.settings, **settings}
            request = EvaluationRequest(
                settings=chosen, episodes=measured.games, seed=0, checkpoint=which, device="cpu"
            )
            rows = ablate_in_games(runs[0], measured.ablations, request, opponents=measured.baselines)
            ablations += figures_of_rows(rows)
        elif measured.ablations:
            ablations += ablation_figures(evaluate_ablations(runs[0], measured.ablations, request))
    recorded = files.read_json(runs[0] / "versions.json").get("commit")
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
    request = EvaluationRequest(settings=settings, episodes=CHECK_EPISODES, checkpoint=which, device="cpu")
    found = evaluate_run(run, request, by_stage=False)[0]
    means = {name: interval.estimate for name, interval in found.summary().items()}
    return Check(episodes=CHECK_EPISODES, settings=settings, measures=means)


def _weights(trained: Trained) -> dict[str, Any]:
    """Return the state that a policy needs: no data, no target networks, an optimizer that took no step."""
    state: dict[str, Any] = dict(checkpoint.load(trained.checkpoint, parts=WEIGHTS))
    fresh = Builder(without_curriculum(trained.config), num_envs=1).algorithm.state_dict()
    algorithm = {name: value for name, value in state["algorithm"].items() if name != "targets"}
    if "optimizer" in algorithm and "optimizer" in fresh:
        algorithm["optimizer"] = fresh["optimizer"]
    return {"algorithm": algorithm, "trainer": {"identity": state["trainer"]["identity"]}}
