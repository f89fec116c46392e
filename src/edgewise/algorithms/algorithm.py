"""Base of all learning algorithms: what each must define, and defaults for everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.setup import Setup
from edgewise.config.model import Config
from edgewise.config.schema import alternatives
from edgewise.data.collector import Collector
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.scale.processes.group import ALONE, Group

Metrics = dict[str, Tensor]
"""0-d tensors by name."""


class Algorithm(ABC):
    """A learning algorithm, on-policy or off-policy.

    A subclass defines `from_setup`, `policy`, `learn`, `state_dict` and `load_state_dict`; its `config_class`
    is the class of its settings. Everything else has a default.

    Attributes:
        config: the settings; None if there are none.
        group: the processes that learn together. An algorithm that averages over them sets it to
            `setup.group`; others are refused if there are several.
        needs_state: whether batches must have the `state` of the simulator.
        takes_older_steps: whether it can learn from steps of older weights, which have `staleness`. Workers
            may then collect while it learns.
        data_keys: keys of its state that hold collected data. A checkpoint stores them apart from the
            weights, and `load_state_dict` must accept a state without them, which leaves the data unchanged.
        rank_keys: other keys of its state that differ between processes; None if all do.
        acting_generators: names of its generators that `behaviour` draws from.
    """

    config_class: ClassVar[type[Config] | None] = None
    config: Any = None
    group: Group = ALONE
    needs_state: bool = False
    takes_older_steps: bool = False
    data_keys: tuple[str, ...] = ()
    rank_keys: tuple[str, ...] | None = None
    acting_generators: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """The policy that is evaluated, and that collects unless there is another `behaviour`."""

    @abstractmethod
    def learn(self, batch: TensorDictBase, /) -> Mapping[str, Tensor]:
        """Update on a batch `[num_envs, T]`; return 0-d tensors."""

    @abstractmethod
    def state_dict(self) -> Mapping[str, Any]:
        """Return everything that the next `learn` depends on, as nested dicts of tensors and numbers."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any], /) -> object:
        """Restore a state; the next `learn` is then bit-equal to that of the saved algorithm."""

    @property
    def behaviour(self) -> Policy:
        """The policy that collects."""
        return self.policy

    @property
    def acting_module(self) -> nn.Module | None:
        """The module with all weights that `behaviour` depends on; None if there are none."""
        return self.policy if isinstance(self.policy, nn.Module) else None

    def make_collector(self, env: GraphEnv[Any], *, rollout_length: int) -> Collector | None:  # noqa: ARG002
        """Return what collects from `env`, if the algorithm needs other batches than those of `Rollout`."""
        return None

    def scalars(self) -> dict[str, float]:
        """Return the current numeric settings by name; settings that are None are left out."""
        return {name: value for name, value in self.config or () if type(value) in (int, float)}

    def set_scalar(self, name: str, value: float) -> None:
        """Change a numeric setting from the next `learn` on, as schedules do.

        Raises:
            ValueError: there is no such number, it is fixed, or the value is not allowed.
        """
        self.config = with_scalar(self.config, name, value, owner=self)
        self.apply_config()

    def apply_config(self) -> None:
        """Pass the numbers of `config` on to the optimizer and other parts; called after every change.

        Raises:
            ValueError: the algorithm does not define it, so that its numbers cannot change.
        """
        raise ValueError(f"{type(self).__name__} has no numbers that can be scheduled")

    def load_scalars(self, values: Mapping[str, float]) -> None:
        """Restore the numbers of a saved `scalars`; those of settings that no longer exist are ignored."""
        for name, value in values.items():
            if name in type(self.config).model_fields:
                self.set_scalar(name, value)


def with_scalar(config: Any, name: str, value: float, *, owner: object) -> Any:
    """Return the config with another value of the number `name`; values of integers are rounded.

    Args:
        config: of an algorithm.
        name: of the setting; an optional number that is None may be set too.
        value: the new value; a fixed setting must keep its value.
        owner: the algorithm, for error messages.

    Raises:
        ValueError: the setting is no number, is fixed, or does not allow the value.
    """
    fields = {} if config is None else type(config).model_fields
    kinds = {key: alternatives(field.annotation) for key, field in fields.items()}
    numbers = [key for key, types in kinds.items() if int in types or float in types]
    if name not in numbers:
        title = type(owner).__name__
        raise ValueError(f"{title} has no numeric setting {name!r}; it has {', '.join(numbers) or 'none'}")
    if name in config.fixed and value != getattr(config, name):
        raise ValueError(f"{name} is fixed and cannot change during a run")
    number = value if float in kinds[name] else round(value)
    return type(config).model_validate(config.model_dump() | {name: number})
