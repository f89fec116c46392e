"""Ablations of policies that play games: ablated against whole, and each against opponents.

A policy that plays itself scores one half with or without anything, so that self-play shows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.evaluation.ablation import ablate
from edgewise.evaluation.arena.match import Match, play_match
from edgewise.evaluation.paired import Row
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.statistics import Interval, paired_difference
from edgewise.experiments.contest import Contest, ReobservingPolicy, make_contest
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder

ITSELF = "score against itself without {}"
OPPONENT = "score against {}"


@dataclass
class ComparedPlayer:
    """A player that acts as always and counts where another one would have moved differently.

    Args:
        player: acts.
        other: is only asked.
    """

    player: Policy
    other: Policy
    changed: int = 0
    moves: int = 0

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        other = self.other(tensordict.copy())["action"]
        acted = self.player(tensordict)
        self.changed += int((acted["action"] != other).sum())
        self.moves += len(other)
        return acted

    @property
    def share(self) -> float:
        """Share of moves that differed."""
        return self.changed / max(self.moves, 1)


def is_game(run: Path) -> bool:
    """Return whether a run is of an environment of two players."""
    from edgewise.experiments.evaluate import load_trained

    return load_trained(run, device="cpu").for_users().env.observation_spec.get("player", None) is not None


def ablate_in_games(
    run: Path, names: Sequence[str], request: EvaluationRequest, *, opponents: Sequence[str] = ()
) -> list[Row]:
    """Play the policy of a run with and without each thing in `names`, from the same openings.

    Args:
        run: a run folder of a game of two players, or a checkpoint's folder within one.
        names: what the policy acts without; see `edgewise.evaluation.ablation.ablate`.
        request: settings, checkpoint and seed; the number of episodes is that of games in a match.
        opponents: baselines, or other players as in `edgewise arena`; those of the run's own evaluation if
            empty.

    Returns:
        For each thing a row of the match against itself without it, then one for each opponent: the scores of
        the policy as it is and of the ablated one, with the difference over pairs of games.
    """
    config = load_config(_folder(run).config_file).evaluation
    settings = {**config.settings, **request.settings}
    others = list(opponents) or [name for name in config.baselines if name != "all"]
    games = request.episodes or config.episodes
    if games % 2:
        raise ConfigError(f"--episodes: got {games}, expected an even number: openings are played twice")
    contest = make_contest(
        [run],
        games=games,
        opponents=others,
        settings=settings,
        which=request.checkpoint,
        device=request.device or "cpu",
    )
    seed = config.seed if request.seed is None else request.seed
    name = next(iter(contest.checkpoints))
    whole = contest.players[name]
    assert isinstance(whole, ReobservingPolicy)
    shared: dict[str, Any] = {"run": name, "settings": settings, "seed": seed, "frames": _frames(contest)}
    against = {other: _play(contest, whole, contest.players[other], seed) for other in others}
    rows = []
    for what in names:
        ablated = ReobservingPolicy(whole.env, ablate(whole.policy, what, whole.env))
        compared = ComparedPlayer(whole, ablated)
        direct = _play(contest, compared, ablated, seed)
        common = {**shared, "other": f"{name} without {what}", "without": what}
        common["changed_actions"] = compared.share
        rows.append({**common, **_direct_row(direct, what)})
        for other, match in against.items():
            without = _play(contest, ablated, contest.players[other], seed)
            rows.append({**common, **_opponent_row(match, without, other)})
    return rows


def _play(contest: Contest, one: Policy, other: Policy, seed: int) -> Match:
    return play_match(contest.env, one, other, seed=seed)


def _direct_row(match: Match, what: str) -> Row:
    """Return the row of a policy against itself without something; its opponent has the other points."""
    found = match.interval()
    doubled = Interval(2 * found.estimate - 1, 2 * found.low - 1, 2 * found.high - 1, found.samples)
    return _row(ITSELF.format(what), match.score, 1 - match.score, doubled)


def _opponent_row(whole: Match, ablated: Match, opponent: str) -> Row:
    difference = paired_difference(whole.scores, ablated.scores)
    return _row(OPPONENT.format(opponent), whole.score, ablated.score, difference)


def _row(measure: str, mean: float, other: float, difference: Interval) -> Row:
    ends = difference.ends()
    return {
        "measure": measure,
        "episodes": 2 * difference.samples,
        "n": difference.samples,
        "mean": mean,
        "other_mean": other,
        "difference": difference.estimate,
        "difference_low": ends["low"],
        "difference_high": ends["high"],
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
    }


def _frames(contest: Contest) -> int:
    return checkpoint.step_of(next(iter(contest.checkpoints.values())))


def _folder(run: Path) -> RunFolder:
    return RunFolder(run.resolve().parents[1] if checkpoint.NAME.fullmatch(run.name) else run)
