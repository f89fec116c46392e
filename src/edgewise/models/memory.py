"""What agents remember: one GRU for all of them, stepped while they act and unrolled while they learn."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.keys import RECURRENT
from edgewise.models.heads import acting_agents


class Memory(nn.Module):
    """A GRU over time for each agent, then a LayerNorm; where nothing is remembered yet, zeros are.

    Args:
        name: the entry under `recurrent` that is this memory's own.
        width: C, of embeddings and of what is remembered.
        num_agents: A, where the observation does not say it.
    """

    def __init__(self, name: str, width: int, *, num_agents: int) -> None:
        super().__init__()
        self.key, self.num_agents = (RECURRENT, name), num_agents
        self.cell, self.norm = nn.GRUCell(width, width), nn.LayerNorm(width)
        for weight in (self.cell.weight_ih, self.cell.weight_hh):
            nn.init.orthogonal_(weight)
        for bias in (self.cell.bias_ih, self.cell.bias_hh):
            nn.init.zeros_(bias)

    def forward(self, h: Tensor, tensordict: TensorDict) -> Tensor:
        """What agents make of one step and what they remember: nodes `[*B, N, C]` to agents `[*B, A, C]`."""
        own = self._agents(h, tensordict)
        return self.norm(self._step(own, self.before(own, tensordict)))

    def remember(self, h: Tensor, tensordict: TensorDict) -> Tensor:
        """As `forward`, and writes what is remembered before and after the step."""
        own = self._agents(h, tensordict)
        before = self.before(own, tensordict)
        after = self._step(own, before)
        tensordict.set(self.key, before).set(("next", *self.key), after)
        return self.norm(after)

    def unroll(self, h: Tensor, chunks: TensorDict) -> Tensor:
        """Step by step through chunks of one world each, `[*B, L, N, C]` to `[*B, L, A, C]`, time last in B.

        A chunk begins with what was remembered then; where an episode ended, the next step begins with
        nothing.
        """
        own = self._agents(h, chunks)
        memory = self.before(own, chunks)[..., 0, :, :]
        ended = chunks.get(("next", "done")).unsqueeze(-1)
        passed = []
        for time in range(own.shape[-3]):
            memory = self._step(own[..., time, :, :], memory)
            passed.append(memory)
            memory = memory.masked_fill(ended[..., time, :, :], 0.0)
        return self.norm(torch.stack(passed, -3))

    def before(self, own: Tensor, tensordict: TensorDict) -> Tensor:
        """What is remembered before the step, in the shape of the agents' embeddings."""
        memory = tensordict.get(self.key, None)
        return torch.zeros_like(own) if memory is None else memory

    def _agents(self, h: Tensor, tensordict: TensorDict) -> Tensor:
        return h[..., : acting_agents(tensordict, self.num_agents).shape[-1], :]

    def _step(self, own: Tensor, before: Tensor) -> Tensor:
        return self.cell(own.flatten(0, -2), before.flatten(0, -2)).view_as(own)
