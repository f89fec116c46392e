"""What an evaluation is asked for: which instances, which checkpoint, and how the policy acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError

CHECKPOINTS = ("best", "latest")


@dataclass(frozen=True)
class EvaluationRequest:
    """How the policy of a run is evaluated. What is not given is as in the run's own evaluation.

    Args:
        episodes: number of instances.
        seed: of the instances.
        settings: fields of the environment's config that differ, such as its size. Without any, a run that is
            evaluated in several stages gives a result for each stage.
        checkpoint: `best` or `latest`, where no checkpoint's folder is given.
        baselines: names of baselines to evaluate on the same instances; `all` for every one.
        deterministic: whether the policy acts by its mode.
        decode: how the policy plays several episodes of each instance, of which the best by return counts:
            `greedy`, `sample:64`, `multistart`, `multistart:8` or `beam:8`. Baselines play one.
        device: on which to evaluate; the run's own if not given.

    Raises:
        ConfigError: a value cannot be, or two exclude each other.
    """

    episodes: int | None = None
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str = "best"
    baselines: tuple[str, ...] = ()
    deterministic: bool = True
    decode: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.checkpoint not in CHECKPOINTS:
            raise ConfigError(f"checkpoint: got {self.checkpoint}, expected {' or '.join(CHECKPOINTS)}")
        if self.episodes is not None and self.episodes < 1:
            raise ConfigError(f"episodes: got {self.episodes}, expected 1 or more")
        if self.decoding is not None and not self.deterministic:
            raise ConfigError(
                f"decode: got {self.decode} with sampled actions", hint="choose sample:1, or leave one out"
            )

    @property
    def decoding(self) -> Decoding | None:
        """How several episodes are played; None for one episode of each instance."""
        return None if self.decode is None else Decoding.parse(self.decode)
