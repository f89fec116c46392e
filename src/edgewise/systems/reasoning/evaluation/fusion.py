"""One score out of several: weights that a validation set fits, so that no test answer ever chooses them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.evaluation.candidate_ranks import mean_reciprocal_rank, ranks


@dataclass(frozen=True)
class Fusion:
    """A weighted sum of scores.

    Args:
        names: of the scores.
        weights: `[F]`, one for each.
        fitted_on: how many lists of candidates chose the weights.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    fitted_on: int

    def __call__(self, scores: Tensor) -> Tensor:
        """`[Q, K]` from `[Q, K, F]`."""
        return scores @ torch.tensor(self.weights, dtype=scores.dtype, device=scores.device)


def fit(scores: Tensor, exists: Tensor, *, names: tuple[str, ...], steps: int = 60) -> Fusion:
    """The weights under which the true candidate of each list is likeliest.

    A softmax over each list gives the true candidate, which is the first, a probability; its logarithm is
    what L-BFGS maximises. The first score alone, the first two, and so on are weighed; what ranks these lists
    best is kept, the fewest of equals: adding evidence must not cost anything.

    Args:
        scores: `[Q, K, F]`, finite, the one to be equalled at least first.
        exists: `[Q, K]`, which candidates there are.
        names: of the F scores.
        steps: of L-BFGS.
    """
    if not scores.isfinite().all():
        raise ValueError("scores to be fused must be finite: replace what is missing by a flag and a zero")
    scores = scores.double()
    tried = [_likeliest(scores, exists, used=used, steps=steps) for used in range(1, scores.shape[-1] + 1)]
    best = max(tried, key=lambda weights: mean_reciprocal_rank(ranks(scores @ weights, exists)))
    return Fusion(names, tuple(best.tolist()), fitted_on=len(scores))


def _likeliest(scores: Tensor, exists: Tensor, *, used: int, steps: int) -> Tensor:
    """Weights `[F]` of the first `used` scores, zero for the others."""
    if used == 1:
        return torch.eye(scores.shape[-1], dtype=torch.float64)[0]
    scale = scores[exists][:, :used].std(0).clamp(min=1e-6)
    weights = torch.zeros(used, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        logits = ((scores[..., :used] / scale) @ weights).masked_fill(~exists, -torch.inf)
        value = -logits.log_softmax(-1)[:, 0].mean() + 1e-4 * weights.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return torch.nn.functional.pad(weights.detach() / scale, (0, scores.shape[-1] - used))
