"""Puts a self-play run together: games against itself and its snapshots, measured by matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from edgewise.evaluation.evaluate import Policy
from edgewise.evaluation.match import Match, play_match
from edgewise.evaluation.result import Evaluation
from edgewise.recipes.compose import Instances, stream
from edgewise.recipes.compose import build as build_alone
from edgewise.recipes.recipe import AnyRun
from edgewise.training.parts import Parts
from edgewise.training.self_play import SelfPlayRollout


def build(config: AnyRun) -> Parts:
    """The parts of a run of `SelfPlayConfig`, evaluated by matches against the config's baselines.

    Evaluations hold `score_NAME` of both seats against every baseline, and their mean as the return.
    """
    parts, chosen = build_alone(config), config.algorithm
    instances = parts.evaluate
    assert isinstance(instances, Instances)
    rollout = SelfPlayRollout(
        parts.rollout.env,  # type: ignore[attr-defined]
        parts.algorithm.policy,  # type: ignore[arg-type]
        steps=config.training.steps,
        share=chosen.pool_share,
        opponents=chosen.opponents,
        pool_size=chosen.pool_size,
        snapshot_every=chosen.snapshot_every,
        matchmaking=chosen.matchmaking,
        gate=chosen.gate,
        gate_games=chosen.gate_games,
        seed=stream(config.seed, "self-play"),
    )
    return replace(parts, rollout=rollout, evaluate=Matches(instances, parts.baselines))


@dataclass(frozen=True)
class Matches:
    """Measures a policy by matches on fixed openings, each played from both seats.

    Args:
        instances: as many games as are played against each opponent.
        opponents: by name; without any, the policy's own play is measured alone.
    """

    instances: Instances
    opponents: Mapping[str, Policy]

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Scores against every opponent, and the states of the first `record` games against itself."""
        alone = self.instances(policy, record=record)
        if not self.opponents:
            return alone
        env, seed = self.instances.env, self.instances.seed
        played = {
            name: play_match(env, policy, opponent, seed=seed) for name, opponent in self.opponents.items()
        }
        scores = {f"score_{name}": _by_game(match) for name, match in played.items()}
        mean = np.mean(list(scores.values()), axis=0)
        return replace(alone, returns=mean, metrics={**alone.metrics, **scores})


def _by_game(match: Match) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The score of every game, `[G]`, first seats before second ones."""
    return np.concatenate((match.as_first, match.as_second))
