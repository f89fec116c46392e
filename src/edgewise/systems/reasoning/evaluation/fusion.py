"""Fusion of several scores by weights that are fitted on validation data only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.evaluation.candidate_ranks import mean_reciprocal_rank, ranks


@dataclass(frozen=True)
class Fusion:
    """A weighted sum of scores.

    Args:
        names: names of the F scores.
        weights: F weights.
        fitted_on: number of candidate lists used for the fit.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    fitted_on: int

    @property
    def by_name(self) -> dict[str, float]:
        """The weights by the names of their scores."""
        return dict(zip(self.names, self.weights, strict=True))

    def __str__(self) -> str:
        return ", ".join(f"{name} {weight:.3g}" for name, weight in self.by_name.items())

    def __call__(self, scores: Tensor) -> Tensor:
        """Compute fused scores `[Q, K]` from scores `[Q, K, F]`."""
        return scores @ torch.tensor(self.weights, dtype=scores.dtype, device=scores.device)


def fit(scores: Tensor, exists: Tensor, *, names: tuple[str, ...], steps: int = 60) -> Fusion:
    """Fit the weights by maximum likelihood of the true candidate of each list.

    L-BFGS maximises the log-softmax over each list at its first, true candidate. The first score alone, the
    first two, and so on are fitted. The fit with the best MRR on these lists is kept, and the one with fewer
    scores on ties, so an added score never lowers the MRR here.

    Args:
        scores: `[Q, K, F]`, finite; the first score is the reference.
        exists: `[Q, K]` bool, which candidates exist.
        names: names of the F scores.
        steps: maximum number of L-BFGS iterations.
    """
    if not scores.isfinite().all():
        raise ValueError("scores for fusion must be finite: replace missing ones by zero and add a flag")
    scores = scores.double()
    fits = [_fit_weights(scores, exists, used=used, steps=steps) for used in range(1, scores.shape[-1] + 1)]
    best = max(fits, key=lambda weights: mean_reciprocal_rank(ranks(scores @ weights, exists)))
    return Fusion(names, tuple(best.tolist()), fitted_on=len(scores))


def _fit_weights(scores: Tensor, exists: Tensor, *, used: int, steps: int) -> Tensor:
    """Fit weights `[F]` of the first `used` scores; the others are zero."""
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
