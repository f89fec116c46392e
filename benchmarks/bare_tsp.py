"""A bare loop for the travelling salesman in plain torch: what the same network costs without a framework.

It has the network of `edgewise.models.decoder` in its simplest form: an attention encoder that runs once per
instance, and a pointer decoder that runs in every step of every start (POMO). Gradients pass through the
steps directly. `benchmarks/rl4co.py` measures it beside edgewise and RL4CO.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Layer(nn.Module):
    """Attention among all cities and a feed-forward part, both with a residual and a norm before."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.project, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, h: Tensor) -> Tensor:
        """Return new embeddings `[I, N, C]`."""
        parts = self.project(self.norms[0](h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        message = functional.scaled_dot_product_attention(*parts.unbind(0))
        h = h + self.out(message.transpose(1, 2).flatten(-2))
        return h + self.wide(self.norms[1](h))


class BareTSP(nn.Module):
    """POMO for the travelling salesman: encode once, then point to the next city in every step.

    Args:
        width: of embeddings.
        layers: of the encoder.
        heads: of every attention.
        hidden: width of the feed-forward parts.
    """

    def __init__(self, *, width: int = 64, layers: int = 2, heads: int = 4, hidden: int = 512) -> None:
        super().__init__()
        self.heads, self.embed = heads, nn.Linear(2, width)
        self.layers = nn.Sequential(*(Layer(width, heads, hidden) for _ in range(layers)))
        self.keys, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.ends, self.mean = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, place: Tensor, starts: int) -> tuple[Tensor, Tensor]:
        """Return lengths and log-probabilities of the tours from `starts` cities, `[I, S]` each."""
        count, cities = place.shape[:2]
        h = self.layers(self.embed(place))
        key, value, pointer = self.keys(h).chunk(3, -1)
        key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (key, value))
        last, first = self.ends(h).chunk(2, -1)
        row = torch.arange(count).unsqueeze(-1)
        city = torch.arange(starts).expand(count, starts)
        context = self.mean(h.mean(1, keepdim=True)) + first[row, city]
        visited = torch.zeros(count, starts, cities, dtype=torch.bool).scatter(-1, city.unsqueeze(-1), True)
        tour, log_prob = [city], torch.zeros(count, starts)
        for _ in range(cities - 1):
            query = (context + last[row, city]).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            seen = functional.scaled_dot_product_attention(query, key, value, ~visited.unsqueeze(1))
            score = self.out(seen.transpose(1, 2).flatten(-2)) @ pointer.mT / math.sqrt(pointer.shape[-1])
            score = (10 * score.tanh()).masked_fill(visited, -torch.inf).log_softmax(-1)
            with torch.no_grad():
                city = (score - torch.empty_like(score).exponential_().log_()).argmax(-1)
            log_prob = log_prob + score.gather(-1, city.unsqueeze(-1)).squeeze(-1)
            visited = visited.scatter(-1, city.unsqueeze(-1), True)
            tour.append(city)
        places = place[row.unsqueeze(-1), torch.stack(tour, -1)]
        return (places - places.roll(-1, 2)).norm(dim=-1).sum(-1), log_prob


def train_step(model: BareTSP, optimizer: torch.optim.Optimizer, place: Tensor, starts: int) -> Tensor:
    """Make one step of REINFORCE with the mean over starts as baseline; return the mean length."""
    length, log_prob = model(place, starts)
    loss = ((length - length.mean(1, keepdim=True)).detach() * log_prob).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return length.detach().mean()
