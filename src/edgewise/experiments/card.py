"""What a card says about a policy: figures, ablations and the command that trains it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise import plugins
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.evaluation.paired import Row
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.ablations import ablation_rows
from edgewise.experiments.load import load_config
from edgewise.runs.zoo import AblationFigure, Figure

if TYPE_CHECKING:
    from edgewise.experiments.evaluate import Ablated

SAME_AS_ROWS = ("without", "settings", "episodes", "measure", "difference", "changed_actions")
"""Fields of an ablation that a row of `ablation_rows` has by the same name."""


def figures_of(evaluations: Sequence[Evaluation], *, name: str) -> Iterator[Figure]:
    """Yield the mean of every measure; a trained policy is called `name`."""
    for one in evaluations:
        for measure, interval in one.summary().items():
            yield Figure(
                policy=one.policy if one.baseline else name,
                baseline=one.baseline,
                settings=dict(one.settings),
                episodes=one.episodes,
                measure=measure,
                mean=interval.estimate,
                **interval.ends(),
            )


def game_figures(
    run: Path, name: str, *, settings: Mapping[str, Any], opponents: Sequence[str], games: int, which: str
) -> Iterator[Figure]:
    """Yield the score of a run against each opponent, and its exploitability where a solver computes it.

    Args:
        run: a run folder of a game of two players.
        name: of the run on the card.
        settings: fields of the environment's config.
        opponents: names of hand-written players.
        games: in each match, an even number.
        which: `best` or `latest` checkpoint.
    """
    from edgewise.evaluation.arena.match import play_match
    from edgewise.experiments.contest import exploitability, make_contest

    contest = make_contest([run], games=games, opponents=opponents, settings=settings, which=which)
    player = next(iter(contest.checkpoints))
    for opponent in opponents:
        match = play_match(contest.env, contest.players[player], contest.players[opponent], seed=0)
        found = match.interval()
        yield Figure(
            policy=name,
            settings=dict(settings),
            episodes=match.games,
            measure=f"score against {opponent}",
            mean=found.estimate,
            **found.ends(),
        )
    for instance, share in exploitability(contest).get(player, {}).items():
        measure = f"exploitability {instance}"
        # The solver counts every opening, so that the share is exact and has no interval.
        exact = {"mean": share, "low": None, "high": None}
        yield Figure(policy=name, settings=dict(settings), episodes=games, measure=measure, **exact)


def ablation_figures(pairs: Sequence[tuple[Evaluation, Ablated]]) -> Iterator[AblationFigure]:
    """Yield the difference that each ablation makes in every measure."""
    yield from figures_of_rows([row for whole, one in pairs for row in ablation_rows(whole, one)])


def figures_of_rows(rows: Sequence[Row]) -> Iterator[AblationFigure]:
    """Yield rows of ablations as figures of a card."""
    for row in rows:
        ends = {"low": row["difference_low"], "high": row["difference_high"]}
        yield AblationFigure(**ends, **{name: row[name] for name in SAME_AS_ROWS})


def training_command(config: AnyRun) -> str:
    """Return the command that trains a run of this config: its recipe or environment, and what differs."""
    recipe = config.recipe if config.recipe in plugins.recipes() else None
    source, algorithm = (recipe, None) if recipe else (config.env_name, config.algorithm_name)
    words = ["edgewise", "train", source, *([] if algorithm is None else ["--algorithm", algorithm])]
    usual = load_config(source, algorithm=algorithm).to_plain()
    plain = config.to_plain()
    differing = {
        path: value
        for path, value in _leaves(plain)
        if path not in dict(_leaves(usual)) or dict(_leaves(usual))[path] != value
    }
    differing["seed"] = config.seed
    flags = [(f"--{path.replace('_', '-')}", _text(value)) for path, value in differing.items()]
    try:
        same = load_config(source, algorithm=algorithm, flags=flags) == config
    except ConfigError:
        same = False
    if not same:
        return "edgewise train config.json"
    return shlex.join([*words, *(word for flag in flags for word in flag)])


def _leaves(values: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{within}{name}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
