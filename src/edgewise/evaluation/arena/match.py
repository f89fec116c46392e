"""Play two policies against each other: every opening twice with the seats exchanged, all games as one batch.

The two games from one opening are not independent, since the same opening favours one seat in both.
Intervals are therefore computed over pairs of games.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.envs.base import GraphEnv
from edgewise.envs.legality import checked_actions
from edgewise.envs.policy import Policy
from edgewise.evaluation.bounds import Values
from edgewise.evaluation.statistics import LEVEL, Interval, score_interval


@dataclass(frozen=True)
class Match:
    """Results of one policy against another.

    Args:
        as_first: score as player 0 from each opening, `[P]`: 1 won, 0.5 drawn, 0 lost.
        as_second: score as player 1.
        plies: plies of each game, `[2, P]`.
    """

    as_first: Values
    as_second: Values
    plies: Values

    @property
    def games(self) -> int:
        """Number of games."""
        return 2 * len(self.as_first)

    @property
    def scores(self) -> Values:
        """Mean score of each pair of games, `[P]`."""
        return (self.as_first + self.as_second) / 2

    @property
    def score(self) -> float:
        """Mean score over both seats."""
        return float(self.scores.mean())

    @property
    def draws(self) -> float:
        """Share of drawn games, those that were truncated included."""
        return float((np.stack((self.as_first, self.as_second)) == 0.5).mean())

    def interval(self, *, level: float = LEVEL) -> Interval:
        """Return the score with its interval over pairs of games."""
        return score_interval(self.scores, level=level)


def play_match(
    env: GraphEnv[Any], policy: Policy, opponent: Policy, *, seed: int, deterministic: bool = True
) -> Match:
    """Play one game in every world of `env`; its random state is left unchanged.

    Args:
        env: a two-player environment with an even number of worlds; it should have random openings.
        policy: the policy whose score is returned.
        opponent: the other policy.
        seed: seed of the openings and of the actions that players sample.
        deterministic: whether players act by their mode; games then differ by their opening alone.
    """
    if env.num_envs % 2:
        raise ValueError(f"a match needs an even number of worlds, got {env.num_envs}")
    pairs = env.num_envs // 2
    with _isolated_randomness(env, seed), _evaluation_mode(policy, opponent), torch.no_grad():
        mode = ExplorationType.DETERMINISTIC if deterministic else ExplorationType.RANDOM
        with set_exploration_type(mode), checked_actions(env):
            env.set_seed(seed)
            root = env.reset()
            twice = torch.arange(pairs, device=env.device).repeat(2)
            seat = torch.arange(2, device=env.device).repeat_interleave(pairs)
            score, plies = _play(env, root[twice], seat=seat, players=(policy, opponent))
    first, second = score.view(2, pairs).double().cpu().numpy()
    return Match(first, second, plies.view(2, pairs).double().cpu().numpy())


def _play(
    env: GraphEnv[Any], root: TensorDictBase, *, seat: Tensor, players: tuple[Policy, Policy]
) -> tuple[Tensor, Tensor]:
    """Play all games to their end; return the scores of `players[0]`, at `seat` `[B]`, and the plies."""
    gained, plies = torch.zeros(len(seat), device=seat.device), torch.zeros_like(seat)
    names = list(root.keys(include_nested=True, leaves_only=True))
    games = torch.arange(len(seat), device=seat.device)
    while len(games):
        own = root["player"] == seat[games]
        action = torch.zeros_like(games)
        for player, moves in zip(players, (own, ~own), strict=True):
            rows = moves.nonzero().squeeze(-1)
            if len(rows):
                action[rows] = player(root[rows])["action"]
        following = env.simulate(root.set("action", action))
        reward = following["reward"].squeeze(-1)
        gained[games] += torch.where(own, reward, -reward)
        plies[games] += 1
        running = (~following["done"].squeeze(-1)).nonzero().squeeze(-1)
        games, root = games[running], following.select(*names)[running]
    return (1 + gained.sign()) / 2, plies


@contextmanager
def _isolated_randomness(env: GraphEnv[Any], seed: int) -> Iterator[None]:
    """Seed the global generators, and restore them and the environment on exit."""
    kept, numpy_state = env.state_dict(), np.random.get_state()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        (torch.manual_seed if devices else torch.default_generator.manual_seed)(seed)
        try:
            yield
        finally:
            env.load_state_dict(kept)
            np.random.set_state(numpy_state)


@contextmanager
def _evaluation_mode(*policies: Policy) -> Iterator[None]:
    """Put modules in evaluation mode, and restore their mode on exit."""
    modules = [policy for policy in policies if isinstance(policy, nn.Module)]
    training = [part for module in modules for part in module.modules() if part.training]
    with ExitStack() as stack:
        for part in training:
            stack.callback(setattr, part, "training", True)
            part.training = False
        yield
