"""Evaluates a policy in self-play by matches against the baselines of the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from edgewise.envs.policy import Policy, acting_in
from edgewise.evaluation.arena.match import Match, play_match
from edgewise.evaluation.instances import Instances
from edgewise.evaluation.result import Evaluation


@dataclass(frozen=True)
class Matches:
    """Evaluates a policy by matches on fixed openings, each played from both sides.

    Args:
        instances: one for each game against an opponent.
        opponents: by name; without any, only self-play is evaluated.
    """

    instances: Instances
    opponents: Mapping[str, Policy]

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Return scores against every opponent, and record the first `record` games of self-play."""
        alone = self.instances(policy, record=record)
        if not self.opponents:
            return alone
        env, seed = self.instances.env, self.instances.seed
        with acting_in(policy, env):
            played = {
                name: play_match(env, policy, opponent, seed=seed)
                for name, opponent in self.opponents.items()
            }
        scores = {f"score_{name}": _by_game(match) for name, match in played.items()}
        mean = np.mean(list(scores.values()), axis=0)
        return replace(alone, returns=mean, metrics={**alone.metrics, **scores})


def _by_game(match: Match) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the score of every game, `[G]`: games as first player, then as second."""
    return np.concatenate((match.as_first, match.as_second))
