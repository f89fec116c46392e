"""How robots act by what each of them sees: all of all worlds in one forward, those that are gone at rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor, nn
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.graphs.actions import ActionLayout, AgentsContinuous
from edgewise.graphs.keys import ACTIVE, EGO


class EgoPolicy(TensorDictModuleBase):
    """What collects and is evaluated: sets `action` of every robot of every world in one forward.

    Robots that are not active get the idle action. On a CPU they are left out of the forward; elsewhere
    shapes stay as they are, so that nothing waits for a count.

    Args:
        networks: whose weights it acts by.
        choose: from what robots see, `[*B]`, to what they do.
        idle: what an inactive robot does, in every dimension of its action.
        returns: from what robots see, `[M]`, to quantiles of the return of what they do, `[M, Q]`, or to None
            where only means are learnt.
    """

    def __init__(
        self,
        networks: nn.Module,
        choose: Callable[[TensorDictBase], Tensor],
        *,
        idle: float,
        returns: Callable[[TensorDictBase], Tensor | None],
    ) -> None:
        super().__init__()
        self.networks, self._choose, self.idle, self._returns = networks, choose, idle, returns
        self.in_keys, self.out_keys = [EGO, ACTIVE], ["action"]

    @torch.no_grad()
    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """`tensordict` with `action` set."""
        active, ego = tensordict[ACTIVE], tensordict[EGO].copy()
        ego.batch_size = active.shape
        if active.device.type == "cpu":
            chosen = self._choose(ego[active])
            action = chosen.new_full((*active.shape, *chosen.shape[1:]), self.idle)
            action[active] = chosen
        else:
            chosen = self._choose(ego)
            counts = active.reshape(*active.shape, *[1] * (chosen.ndim - active.ndim))
            action = torch.where(counts, chosen, self.idle)
        return tensordict.set("action", action)

    def decide(self, ego: Mapping[str, Tensor]) -> Tensor:
        """What robots do that see `self`, `objects` and `mask`, `[M]` or `[M, dim]`; never at random.

        Plain tensors in, a tensor out, for programs without TensorDicts.
        """
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return self._choose(ego)

    @torch.no_grad()
    def returns(self, ego: TensorDictBase) -> Tensor | None:
        """Quantiles of the return of what robots do that see `ego [M]`, without exploration, `[M, Q]`."""
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return self._returns(ego)


def idle_action(actions: ActionLayout) -> float:
    """What changes nothing: the first choice, or the middle of the range."""
    return (actions.low + actions.high) / 2 if isinstance(actions, AgentsContinuous) else 0
