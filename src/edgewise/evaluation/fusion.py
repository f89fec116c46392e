"""One score out of several: weights that a validation set fits, so that no test answer ever chooses them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.evaluation.candidate_ranks import mean_reciprocal_rank, ranks


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


def fit(scores: Tensor, exists: Tensor, *, names: tuple[str, ...], alone: int, steps: int = 60) -> Fusion:
    """The weights under which the true candidate of each list is likeliest.

    A softmax over each list gives the true candidate, which is the first, a probability; its logarithm is
    what L-BFGS maximises. Where the fitted sum ranks the same lists no better than one score alone does,
    that score alone is kept: adding evidence must not cost anything.

    Args:
        scores: `[Q, K, F]`, finite.
        exists: `[Q, K]`, which candidates there are.
        names: of the F scores.
        alone: which score must at least be equalled.
        steps: of L-BFGS.
    """
    if not scores.isfinite().all():
        raise ValueError("scores to be fused must be finite: replace what is missing by a flag and a zero")
    scores = scores.double()
    scale = scores[exists].std(0).clamp(min=1e-6)
    weights = torch.zeros(scores.shape[-1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        logits = ((scores / scale) @ weights).masked_fill(~exists, -torch.inf)
        value = -logits.log_softmax(-1)[:, 0].mean() + 1e-4 * weights.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    fitted = weights.detach() / scale
    single = torch.zeros_like(fitted)
    single[alone] = 1.0
    best = max((single, fitted), key=lambda chosen: mean_reciprocal_rank(ranks(scores @ chosen, exists)))
    return Fusion(names, tuple(best.tolist()), fitted_on=len(scores))
