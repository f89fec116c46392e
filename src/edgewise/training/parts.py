"""The parts of a run as the trainer uses them: algorithm, collector, environment and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDict

from edgewise.algorithms.algorithm import Algorithm
from edgewise.data.collector import Collector, Resumable
from edgewise.envs.policy import Policy
from edgewise.evaluation.result import Evaluation


@runtime_checkable
class HasMetrics(Protocol):
    """A collector with metrics of its own."""

    def metrics(self) -> Mapping[str, float]:
        """Return numbers by name; called after each batch."""


@runtime_checkable
class HasClose(Protocol):
    """A collector that holds something which ends with the run, such as processes."""

    def close(self) -> None:
        """Let go of it; called once, however the run ends."""


class Worlds(Resumable, Protocol):
    """The environment, as far as a curriculum uses it."""

    def apply_stage(self, **settings: Any) -> None:
        """Change settings of every world from its next reset on."""


class Evaluate(Protocol):
    """Evaluates a policy on a fixed set of instances, made once from a seed and played as one batch."""

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Return the measures of every episode, and the states of the first `record` episodes.

        Global random states and those of the training worlds are left unchanged.
        """


@dataclass(frozen=True)
class Parts:
    """The parts of a run.

    Args:
        env: the training worlds.
        algorithm: the learning algorithm.
        rollout: collects from `env` with the algorithm's policy; its state includes what it carries from
            batch to batch.
        evaluate: evaluates on the fixed instances.
        baselines: hand-written policies by name, evaluated once on the same instances.
        replay: builds a replay from the states `[T + 1]` and the steps `[T]` of a recorded episode; None for
            no replays.
    """

    env: Worlds
    algorithm: Algorithm
    rollout: Collector
    evaluate: Evaluate
    baselines: Mapping[str, Policy] = field(default_factory=dict)
    replay: Callable[[TensorDict, TensorDict], dict[str, Any]] | None = None
