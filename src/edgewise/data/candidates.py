"""Collect whole episodes of many candidate policies on the same worlds with the same random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torchrl.envs import ExplorationType

from edgewise.data.episodes import INSTANCE, World, play_episodes
from edgewise.data.instance_batch import true_places
from edgewise.data.rollout import acting
from edgewise.envs.common_random import CommonRandomNumbers

CANDIDATE = "candidate"
"""The number of the candidate that made a step."""

NOISE = "noise"
"""The random seed from which the candidates of a batch were drawn, int64."""

Act = Callable[[TensorDictBase], Tensor]
"""A candidate: returns the actions of worlds."""


class CandidateEpisodes:
    """Plays every candidate on the same worlds, all side by side in one batch.

    A batch is `[1, S]`: the steps of all episodes one after another, with `candidate`, `instance`, `noise`
    and what came of them, but without observations. Candidates meet the same initial states, and the same
    random numbers as far as the environment draws them as `CommonRandomNumbers` says.

    Args:
        env: a `GraphEnv`.
        module: of the candidates; it is in evaluation mode while they act, by their mode.
        draw: returns the candidates of a batch that follow from a random seed.
        candidates: their number.
        rollout_length: minimum number of steps of a world in a batch; rounds of whole episodes on new worlds
            are added until it is reached.
        longest: largest number of steps of an episode, where the environment has no time limit.
        seed: random seed of the candidates.
    """

    def __init__(
        self,
        env: World,
        module: nn.Module,
        draw: Callable[[int], Sequence[Act]],
        *,
        candidates: int,
        rollout_length: int = 1,
        longest: int = 1000,
        seed: int = 0,
    ) -> None:
        self.env, self.module, self.draw, self.candidates = env, module, draw, candidates
        self.rollout_length, self.longest = rollout_length, longest
        self.generator = torch.Generator().manual_seed(seed)

    @property
    def worlds(self) -> int:
        """Worlds of every candidate in a round."""
        return self.env.num_envs // self.candidates

    def collect(self) -> TensorDictBase:
        """Collect the next batch of whole episodes, `[1, S]`."""
        seed = int(torch.randint(2**62, (), generator=self.generator))
        candidates = self.draw(seed)
        rounds: list[TensorDictBase] = []
        steps = 0
        with acting(self.module, mode=ExplorationType.DETERMINISTIC):
            while steps < self.rollout_length:
                played, length = self._round(candidates, first_instance=len(rounds) * self.worlds)
                rounds.append(played)
                steps += length
        batch: TensorDictBase = torch.cat(rounds).unsqueeze(0)
        return batch.set(NOISE, torch.full(batch.batch_size, seed, device=self.env.device))

    def _round(self, candidates: Sequence[Act], *, first_instance: int) -> tuple[TensorDictBase, int]:
        """Play one episode of every candidate in every world; return the steps and the longest episode."""
        worlds, device = self.worlds, self.env.device
        instance = torch.arange(worlds, device=device).repeat(self.candidates)
        candidate = torch.arange(self.candidates, device=device).repeat_interleave(worlds)
        roots = self.env.new_worlds(worlds)[instance]

        def policy(root: TensorDictBase) -> TensorDictBase:
            parts = [act(part) for act, part in zip(candidates, root.split(worlds), strict=True)]
            return root.set("action", torch.cat(parts))

        with CommonRandomNumbers(self.env.generator, worlds=worlds, copies=self.candidates):
            steps, counted = play_episodes(self.env, policy, roots, longest=self.longest, observed=False)
        length = steps.batch_size[1]
        for name, value in {INSTANCE: instance + first_instance, CANDIDATE: candidate}.items():
            steps.set(name, value.unsqueeze(1).expand(-1, length))
        return steps.reshape(-1)[true_places(counted)], length

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the environment and of the generator; no episode is under way."""
        return {"env": self.env.state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next batch is then bit-equal to that of the saved collector."""
        self.env.load_state_dict(state["env"])
        self.generator.set_state(state["generator"].cpu())
