"""Active search: a policy goes on learning on each instance that it solves.

Of the networks, only the node embeddings that the decoder points to change, and every instance has its own
(https://arxiv.org/abs/2106.05126). So instances do not influence each other, and the policy itself stays as
it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy, encode_once
from edgewise.evaluation.beam_search import WORLDS_OF_INSTANCES, listed
from edgewise.evaluation.episodes import Progress, Tally, play
from edgewise.graphs.keys import CHOICES, MASK, STEP
from edgewise.models.instance_actor import OnInstances

EPISODES = 16
"""Sampled episodes of an instance in each round."""
RATE = 0.02
"""Learning rate of Adam, for embeddings of order one."""
IMITATION = 1.0
"""Weight of the best episode so far, where advantages have standard deviation one."""


def active(
    env: GraphEnv[Any],
    policy: Policy,
    root: TensorDictBase,
    *,
    how: Decoding,
    limit: int,
    seeded: Callable[[int], None],
    progress: Progress | None,
) -> tuple[Tally, int]:
    """Search every instance for `how.width` rounds of sampled episodes, after a greedy one.

    Returns:
        The best episode of each instance, and the number of episodes that it was chosen from.

    Raises:
        ConfigError: actions cannot be listed, or the policy does not encode instances once.
    """
    assert how.width is not None
    listed(env, root, how)
    parts = root.split(max(1, WORLDS_OF_INSTANCES // (EPISODES + 1)))
    found: list[Tally] = []
    for number, part in enumerate(parts):
        search = _Search(env, policy, part, how=how, limit=limit)
        for turn in range(how.width):
            seeded(number * how.width + turn)
            search.round()
            if progress is not None:
                done = sum(map(len, parts[:number])) + len(part) * (turn + 1) // how.width
                progress(done, len(root), turn + 1)
        found.append(search.best)
    return Tally.cat(found), 1 + how.width * EPISODES


class _Search:
    """The search of some instances `[I]`: the best episode of each so far, its actions, and the embeddings.

    Each instance has `EPISODES` worlds, and one in which its best episode is played again, to imitate it.
    """

    def __init__(
        self, env: GraphEnv[Any], policy: Policy, root: TensorDictBase, *, how: Decoding, limit: int
    ) -> None:
        acting, bare = encode_once(policy, root)
        if not isinstance(acting, OnInstances):
            raise ConfigError(
                f"decode: got {how}, which changes the embeddings of single instances, but here a graph is "
                "encoded in every step",
                hint="it needs an environment with `describe`; use sample:N or guided:K",
            )
        self.env, self.limit, self.acting = env, limit, acting
        self.embeddings = acting.embeddings.detach().clone().requires_grad_()
        self.optimizer = torch.optim.Adam([self.embeddings], lr=RATE)
        self.instances, device = len(root), root["done"].device
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            recorder = _Recorder(acting)
            self.best = play(env.simulate, recorder, bare, limit=limit)[0]
        self.actions = torch.stack([step["action"] for step in recorder.steps], 1)
        self.worlds = bare[torch.arange(self.instances, device=device).repeat_interleave(EPISODES + 1)]

    def round(self) -> None:
        """Sample episodes of every instance, keep what is better, and learn from all of them."""
        recorder = _Recorder(self.acting, last=self.actions)
        self.acting.embeddings = self.embeddings
        with set_exploration_type(ExplorationType.RANDOM):
            tally = play(self.env.simulate, recorder, self.worlds, limit=self.limit)[0]
        returns = tally.team_returns().view(self.instances, -1)
        steps: TensorDictBase = torch.stack(recorder.steps, 1)
        self._learn(steps, returns, tally.lengths)
        rows = torch.arange(self.instances, device=returns.device)
        winner = returns[:, :EPISODES].argmax(-1)
        is_better = returns.gather(1, winner.unsqueeze(-1)).squeeze(-1) > self.best.team_returns()
        chosen = rows * (EPISODES + 1) + winner
        both = Tally.cat([self.best, tally.select(chosen)])
        self.best = both.select(torch.where(is_better, rows + self.instances, rows))
        taken, kept = _of_equal_length(steps["action"][chosen], self.actions)
        self.actions = torch.where(is_better.view(-1, *[1] * (taken.dim() - 1)), taken, kept)

    def _learn(self, steps: TensorDictBase, returns: Tensor, lengths: Tensor) -> None:
        """Make a step of REINFORCE with the mean over episodes as baseline, and imitate the best episode."""
        advantage = returns[:, :EPISODES] - returns[:, :EPISODES].mean(-1, keepdim=True)
        advantage = advantage / advantage.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-8) / EPISODES
        weight = torch.cat((advantage, torch.full_like(advantage[:, :1], IMITATION)), 1).float()
        made = torch.arange(steps.batch_size[1], device=lengths.device) < lengths.unsqueeze(-1)
        with torch.enable_grad():
            self.acting.embeddings = self.embeddings
            log_prob = self.acting.get_dist(steps.reshape(-1)).log_prob(steps["action"].reshape(-1))
            log_prob = torch.where(made, log_prob.view(made.shape), 0.0).sum(-1).view(returns.shape)
            loss = -(weight * log_prob).sum()
            (self.embeddings.grad,) = torch.autograd.grad(loss, [self.embeddings])
        self.optimizer.step()


class _Recorder:
    """A policy that keeps what it observes and does, and whose last world of each instance follows a plan.

    Args:
        policy: acts in the other worlds.
        last: actions of the last world of each instance over time, `[I, T]`.
    """

    def __init__(self, policy: Policy, *, last: Tensor | None = None) -> None:
        self.policy, self.last = policy, last
        self.steps: list[TensorDictBase] = []

    def __call__(self, root: TensorDictBase) -> TensorDictBase:
        acted = self.policy(root)
        if self.last is not None and len(self.steps) < self.last.shape[1]:
            action = acted["action"].unflatten(0, (len(self.last), -1)).clone()
            action[:, -1] = self.last[:, len(self.steps)]
            acted.set("action", action.flatten(0, 1))
        self.steps.append(acted.select(STEP, MASK, CHOICES, "action", strict=False))
        return acted


def _of_equal_length(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Pad actions over time `[I, T]` of two plans with their last ones, which no world reaches."""
    length = max(one.shape[1], other.shape[1])

    def padded(plan: Tensor) -> Tensor:
        last = plan[:, -1:].expand(-1, length - plan.shape[1], *plan.shape[2:])
        return torch.cat((plan, last), 1)

    return padded(one), padded(other)
