"""TorchRL's estimators and losses with graph networks: what must be set, wherever it hides."""

from __future__ import annotations

from typing import TypeVar

from torchrl.objectives import LossModule
from torchrl.objectives.value import ValueEstimatorBase

Objective = TypeVar("Objective", bound=LossModule | ValueEstimatorBase)


def without_vmap(objective: Objective) -> Objective:
    """The same estimator or loss, which from now on calls its networks in turn and never vmaps them.

    Vmap cannot follow shapes that depend on data, and over two or three networks it is slower than a loop.
    A loss keeps the value estimator it has, or gets its default one: call `make_value_estimator` before, not
    after.

    Args:
        objective: a loss (`ClipPPOLoss`, `MAPPOLoss`, `DQNLoss`, `SACLoss`, `DDPGLoss`, …) or an estimator
            (`GAE`, `TD0Estimator`, …) of TorchRL; it is changed in place.

    Example:
        >>> from torchrl.objectives.value import GAE
        >>> without_vmap(GAE(gamma=0.99, lmbda=0.95, value_network=None)).deactivate_vmap
        True
    """
    estimator = objective
    if isinstance(objective, LossModule):
        estimator = objective.value_estimator
        if hasattr(objective, "deactivate_vmap"):
            objective.deactivate_vmap = True
            objective.set_vmap_randomness(objective.vmap_randomness)
    estimator.deactivate_vmap = True
    return objective
