"""Use TorchRL's losses and value estimators with graph networks, which `vmap` does not support."""

from __future__ import annotations

from typing import TypeVar

from torchrl.objectives import LossModule
from torchrl.objectives.value import ValueEstimatorBase

Objective = TypeVar("Objective", bound=LossModule | ValueEstimatorBase)


def without_vmap(objective: Objective) -> Objective:
    """Disable `vmap` in a TorchRL loss or value estimator, in place, and return it.

    Graph networks have shapes that depend on data, which `vmap` does not support; for two or three networks
    it is also slower than a loop. With this, the objective calls its networks one after another. If the loss
    needs another value estimator than its default, call `make_value_estimator` first.

    Args:
        objective: a loss (`ClipPPOLoss`, `MAPPOLoss`, `DQNLoss`, `SACLoss`, `DDPGLoss`, …) or an estimator
            (`GAE`, `TD0Estimator`, …) of TorchRL.

    Returns:
        The same object.

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
