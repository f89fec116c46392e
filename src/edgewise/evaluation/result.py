"""The result of an evaluation: one value per episode and measure, saved as JSON and read without torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.config import files
from edgewise.config.errors import DataError
from edgewise.evaluation.bounds import Values
from edgewise.evaluation.statistics import LEVEL, Interval, mean_interval
from edgewise.runs import digests

if TYPE_CHECKING:
    from tensordict import TensorDict

FORMAT = "edgewise-evaluation/1"
UNBOUNDED = ("return", "length")
"""Measures that every environment has, and whose range is not known."""
FIELDS: Mapping[str, type | UnionType] = {
    "env": str,
    "policy": str,
    "baseline": bool,
    "deterministic": bool,
    "seed": int,
    "frames": int | None,
    "settings": dict,
    "metrics": dict,
}
"""Types of the entries of a saved evaluation, besides its lists."""


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one policy on one fixed set of instances.

    Args:
        env: name of the environment.
        seed: seed of the instances; equal seeds and episodes mean equal instances.
        returns: undiscounted return of each episode, `[E]`: the mean over the agents that acted if there are
            agents, and the return of player 0 if there are two players.
        lengths: steps of each episode, `[E]`.
        finished: whether the episode ended before the evaluation's own step limit, `[E]`.
        metrics: the environment's own episode metrics by name, `[E]` each; NaN where undefined.
        agent_returns: return of each agent, `[E, A]`, NaN where an agent never acted; None without agents.
        deterministic: whether the policy acted by its mode.
        policy: `policy`, or the name of a baseline.
        baseline: whether it is a baseline.
        frames: frames the policy had been trained for.
        settings: environment settings changed for this evaluation, such as its size.
        decode: how several episodes of each instance were played, such as `sample:64`; None for one episode.
        trajectories: number of episodes of each instance, of which the best by return counts.
        recordings: `state` over time, `[T + 1]`, of the recorded episodes; not saved.
        recorded_steps: `action` and `return` so far at each step, `[T]`, of the same episodes; not saved.
        others: evaluations on the same instances, such as those of baselines, shown beside; not saved.
    """

    env: str
    seed: int
    returns: Values
    lengths: Values
    finished: Values
    metrics: Mapping[str, Values] = field(default_factory=dict)
    agent_returns: Values | None = None
    deterministic: bool = True
    policy: str = "policy"
    baseline: bool = False
    frames: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    decode: str | None = None
    trajectories: int = 1
    recordings: tuple[TensorDict, ...] = field(default=(), compare=False, repr=False)
    recorded_steps: tuple[TensorDict, ...] = field(default=(), compare=False, repr=False)
    others: tuple[Evaluation, ...] = field(default=(), compare=False, repr=False)

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.returns)

    @property
    def label(self) -> str:
        """The policy with its decoding, for tables."""
        return self.policy if self.decode is None else f"{self.policy}, {self.decode}"

    @property
    def success(self) -> Values | None:
        """The `success` metric of the environment, `[E]`; None if it has none."""
        return self.metrics.get("success")

    def measures(self) -> dict[str, Values]:
        """Return all measures by name, `[E]` each: `return`, `length`, and the metrics of the environment."""
        return {"return": self.returns, "length": self.lengths, **self.metrics}

    def summary(self, *, level: float = LEVEL) -> dict[str, Interval]:
        """Compute the mean of each measure with its interval over episodes, ignoring NaN."""
        intervals = {}
        for name, values in self.measures().items():
            defined = values[~np.isnan(values)]
            if len(defined):
                intervals[name] = measure_interval(name, defined, level=level)
        return intervals

    def table(self) -> list[list[str]]:
        """Return the summary as rows of text, after a header: one for this policy and each of `others`."""
        evaluations = (self, *self.others)
        summaries = [evaluation.summary() for evaluation in evaluations]
        measures = list(dict.fromkeys(name for found in summaries for name in found))
        settings = list(dict.fromkeys(name for evaluation in evaluations for name in evaluation.settings))
        rows = [[*settings, "policy", "episodes", *measures]]
        for evaluation, found in zip(evaluations, summaries, strict=True):
            cells = [str(found[name]) if name in found else "" for name in measures]
            chosen = [str(evaluation.settings.get(name, "")) for name in settings]
            rows.append([*chosen, evaluation.label, str(evaluation.episodes), *cells])
        return rows

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (zip(row, widths, strict=True) for row in rows)
        return "\n".join("  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        header, *rows = ([escape(cell) for cell in row] for row in self.table())
        body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
        return f"<table><tr><th>{'</th><th>'.join(header)}</th></tr>{body}</table>"

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as plain lists, without the recordings; NaN becomes None."""
        return {
            "format": FORMAT,
            "env": self.env,
            "policy": self.policy,
            "baseline": self.baseline,
            "frames": self.frames,
            "seed": self.seed,
            "episodes": self.episodes,
            "deterministic": self.deterministic,
            "decode": self.decode,
            "trajectories": self.trajectories,
            "settings": dict(self.settings),
            "returns": _to_list(self.returns),
            "lengths": [int(length) for length in self.lengths],
            "finished": [bool(end) for end in self.finished],
            "metrics": {name: _to_list(values) for name, values in self.metrics.items()},
            "agent_returns": None
            if self.agent_returns is None
            else [_to_list(row) for row in self.agent_returns],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Evaluation:
        """Build the evaluation from the output of `to_json`."""
        if entry.get("format") != FORMAT:
            raise DataError(f"format {str(entry.get('format'))[:40]!r} is not {FORMAT!r}")
        for name, kind in FIELDS.items():
            if not isinstance(entry[name], kind):
                raise TypeError(f"{name} is a {type(entry[name]).__name__}")
        agents = entry["agent_returns"]
        found = cls(
            env=entry["env"],
            seed=entry["seed"],
            returns=_to_array(entry["returns"]),
            lengths=_to_array(entry["lengths"]),
            finished=np.asarray(entry["finished"], dtype=bool),
            metrics={name: _to_array(values) for name, values in entry["metrics"].items()},
            agent_returns=None if agents is None else np.stack([_to_array(row) for row in agents]),
            deterministic=entry["deterministic"],
            policy=entry["policy"],
            baseline=entry["baseline"],
            frames=entry["frames"],
            settings=entry["settings"],
            decode=entry.get("decode"),
            trajectories=entry.get("trajectories", 1),
        )
        for name, values in {**found.measures(), "finished": found.finished}.items():
            if values.shape != found.returns.shape:
                raise ValueError(f"{name} has {values.size} values for {found.episodes} episodes")
        return found

    def save(self, path: Path | str) -> Path:
        """Write the evaluation as JSON, by an atomic replacement of the file."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        digests.replace(target, (json.dumps(self.to_json(), allow_nan=False) + "\n").encode())
        return target

    @classmethod
    def load(cls, path: Path | str) -> Evaluation:
        """Read an evaluation."""
        try:
            return cls.from_json(files.read_json(Path(path)))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        except DataError as error:
            raise DataError(f"{path}: {error.message}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: not an evaluation: {error!r}") from error


def measure_interval(name: str, values: Values, *, level: float = LEVEL) -> Interval:
    """Compute the mean of a measure over episodes `[n]` with its interval.

    Metrics of an environment that are all 0 or 1 are shares; returns and lengths never are, whatever they
    happen to be in these episodes.
    """
    return mean_interval(values, share=name not in UNBOUNDED, level=level)


def _to_list(values: Values) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def _to_array(values: list[float | None]) -> Values:
    for value in values:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"a measure has {str(value)[:20]!r}, which is not a number")
    return np.asarray([math.nan if value is None else value for value in values], dtype=np.float64)
