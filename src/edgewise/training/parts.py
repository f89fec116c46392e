"""What a run is made of, as the trainer sees it: an algorithm of four names, what feeds and measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.evaluation.result import Evaluation
from edgewise.graphs.policy import Policy


class Resumable(Protocol):
    """Whatever a checkpoint keeps: nested dicts of tensors, numbers and strings, and the way back."""

    def state_dict(self) -> Mapping[str, Any]:
        """Everything that what comes next depends on; large tensors as they are, without a copy."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> object:
        """Continue as what gave `state` would have."""


class Algorithm(Resumable, Protocol):
    """A way to learn; on- or off-policy is its own affair."""

    @property
    def policy(self) -> Policy:
        """What collects and is evaluated."""

    def learn(self, batch: TensorDictBase, /) -> Mapping[str, Tensor]:
        """Improve on a batch `[num_envs, T]`; returns 0-d tensors."""


class Collector(Resumable, Protocol):
    """Steps the worlds."""

    def collect(self) -> TensorDictBase:
        """The next batch, `[num_envs, T]`."""


@runtime_checkable
class Telling(Protocol):
    """A collector that has numbers of its own to log."""

    def metrics(self) -> Mapping[str, float]:
        """Numbers by name, after each batch."""


class Worlds(Resumable, Protocol):
    """The environment, as far as a curriculum touches it."""

    def apply_stage(self, **settings: Any) -> None:
        """Let worlds follow other settings from their next reset on."""


class Evaluate(Protocol):
    """Plays a policy on fixed instances, made once from a seed, one batch, whatever the curriculum does."""

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Every episode's measures, and the states of the first `record` episodes.

        Global random states and those of the training worlds are left as they were.
        """


@dataclass(frozen=True)
class Parts:
    """A run's moving parts, put together by a recipe.

    Args:
        env: the training worlds.
        algorithm: what learns.
        rollout: collects from `env` with the algorithm's policy; its state has what it carries from batch
            to batch.
        evaluate: plays on the fixed instances.
        baselines: hand-written policies by name, measured once on the same instances.
        replay: makes a replay of the recorded states of an episode, `[T + 1]`; None for no replays.
    """

    env: Worlds
    algorithm: Algorithm
    rollout: Collector
    evaluate: Evaluate
    baselines: Mapping[str, Policy] = field(default_factory=dict)
    replay: Callable[[TensorDictBase], dict[str, Any]] | None = None
