"""Evaluate states of a tree search by random games, as in plain Monte-Carlo tree search."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.search.tree import Evaluator, sign


def random_game_evaluator(
    env: GraphEnv[Any], *, games: int = 1, max_steps: int, generator: torch.Generator | None = None
) -> Evaluator:
    """Return an evaluator with a uniform prior and the mover's mean result over random games.

    Args:
        env: provides the rules; its transitions must be deterministic, and players need not alternate.
        games: random games per state.
        max_steps: steps after which a game counts as it stands, with the rewards so far.
        generator: of the random moves; None for torch's default.
    """

    def evaluate(root: TensorDictBase) -> tuple[Tensor, Tensor]:
        state, mask = root["state"], root["action_mask"]
        start = state.repeat_interleave(games) if games > 1 else state
        result = play_at_random(env, start, max_steps=max_steps, generator=generator)
        value = result.view(len(state), games).mean(-1) * sign(state["player"])
        return mask / mask.sum(-1, keepdim=True), value

    return evaluate


def play_at_random(
    env: GraphEnv[Any], state: TensorDictBase, *, max_steps: int, generator: torch.Generator | None = None
) -> Tensor:
    """Play uniformly random legal moves from the states `[B]` until every game is over.

    Returns:
        The sum of rewards from the perspective of player 0, `[B]`; 0 for states without a legal move.
    """
    total = torch.zeros(len(state), device=state["player"].device)
    row = torch.arange(len(state), device=total.device)
    for _ in range(max_steps):
        mask = env.mask(state)
        if mask is None:
            raise ValueError(f"random games need an action mask, but {env.name} has none")
        alive = mask.any(-1)
        if not bool(alive.all()):
            state, mask, row = state[alive], mask[alive], row[alive]
        if not len(row):
            break
        moved = env.advance(state, _random_action(mask, generator))
        total[row] += moved.reward * sign(state["player"])
        state = TensorDict({**state, **moved.state}, state.batch_size)
        if moved.terminated is not None:
            state, row = state[~moved.terminated], row[~moved.terminated]
    return total


def _random_action(mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """Sample a legal action of each row, `[B, A]` bool to `[B]`; faster than `torch.multinomial`."""
    count = mask.sum(-1)
    chance = torch.rand(len(mask), generator=generator, device=mask.device)
    rank = (chance * count).long().clamp(max=count - 1)
    return (mask.cumsum(-1) <= rank.unsqueeze(-1)).sum(-1)
