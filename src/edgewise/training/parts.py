"""The parts of a run as the trainer uses them: protocols for the algorithm, the collector and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.evaluation.result import Evaluation


class Resumable(Protocol):
    """An object whose state a checkpoint holds: nested dicts of tensors, numbers and strings."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return everything that later steps depend on; large tensors are not copied."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> object:
        """Restore `state`."""


class Algorithm(Resumable, Protocol):
    """A learning algorithm, on-policy or off-policy.

    An algorithm that keeps collected data may name the keys of that data in its state as `data_keys`, such as
    `("replay_buffer",)`. A checkpoint then stores the data apart from the weights, and `load_state_dict` must
    accept a state without these keys, which leaves the data unchanged.

    An algorithm that needs other batches than those of `Rollout` may have
    `make_collector(env, rollout_length=...)`, which returns a `Collector`.

    Workers collect with the weights of `policy`. An algorithm whose behaviour depends on more names it:
    `acting_module`, a module with all weights, and `acting_generators`, its generators that it draws from.
    With `takes_older_steps`, they may collect while it learns: steps have `staleness` then.
    """

    @property
    def policy(self) -> Policy:
        """The policy that collects and is evaluated."""

    def learn(self, batch: TensorDictBase, /) -> Mapping[str, Tensor]:
        """Update on a batch `[num_envs, T]`; returns 0-d tensors."""


class Collector(Resumable, Protocol):
    """Collects batches from the training environment."""

    def collect(self) -> TensorDictBase:
        """Return the next batch, `[num_envs, T]`."""


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
