"""The recurrent cell of agents: one GRU for all agents, stepped while acting and unrolled while learning."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.keys import RECURRENT
from edgewise.models.heads import acting_agents


class Memory(nn.Module):
    """A GRU over time with one hidden state per agent, then a LayerNorm; hidden states start at zero.

    Args:
        name: the entry of its hidden state under `recurrent`.
        width: C, of embeddings and hidden states.
        num_agents: A, if the observation does not determine it.
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
        """Map node embeddings `[*B, N, C]` of one step to agent embeddings `[*B, A, C]`."""
        own = self._agents(h, tensordict)
        return self.norm(self._cell(own, self.hidden_state(own, tensordict)))

    def step(self, h: Tensor, tensordict: TensorDict) -> Tensor:
        """Do the same as `forward`, and write the hidden states before and after the step."""
        own = self._agents(h, tensordict)
        before = self.hidden_state(own, tensordict)
        after = self._cell(own, before)
        tensordict.set(self.key, before).set(("next", *self.key), after)
        return self.norm(after)

    def unroll(self, h: Tensor, chunks: TensorDict) -> Tensor:
        """Map node embeddings of chunks `[*B, L, N, C]` to agent embeddings `[*B, L, A, C]`, step by step.

        A chunk starts with its stored hidden state. The hidden state is reset to zero after the end of an
        episode.
        """
        return self.norm(self.hidden_states(h, chunks))

    def hidden_states(self, h: Tensor, chunks: TensorDict, *, burn_in: int = 0) -> Tensor:
        """Return the hidden states after each step of chunks, `[*B, L, A, C]`, without those of a reset.

        Gradients do not reach the first `burn_in` steps.
        """
        own = self._agents(h, chunks)
        hidden = self.hidden_state(own, chunks)[..., 0, :, :]
        done = chunks.get(("next", "done")).unsqueeze(-1)
        outputs = []
        for time in range(own.shape[-3]):
            if time == burn_in:
                hidden = hidden.detach()
            hidden = self._cell(own[..., time, :, :], hidden)
            outputs.append(hidden)
            hidden = hidden.masked_fill(done[..., time, :, :], 0.0)
        return torch.stack(outputs, -3)

    def hidden_state(self, own: Tensor, tensordict: TensorDict) -> Tensor:
        """Return the hidden state before the step, in the shape of the agents' embeddings."""
        hidden = tensordict.get(self.key, None)
        return torch.zeros_like(own) if hidden is None else hidden

    def _agents(self, h: Tensor, tensordict: TensorDict) -> Tensor:
        return h[..., : acting_agents(tensordict, self.num_agents).shape[-1], :]

    def _cell(self, own: Tensor, before: Tensor) -> Tensor:
        return self.cell(own.flatten(0, -2), before.flatten(0, -2)).view_as(own)
