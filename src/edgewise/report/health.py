"""Check the logged numbers of a run: finite values, policy ratio, gradient norm, logits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edgewise.evaluation.bounds import Values
from edgewise.report.metrics_table import MetricsTable

State = Literal["good", "warn", "bad"]

HEALTH_METRICS = re.compile(r"^health/|gradient|ratio|/kl$|clipped|entropy|explained_variance")
"""Metrics shown in the section on numerical health instead of learning."""

NOT_FINITE = "not finite"
"""Part of the reason of a run that stopped because a number was not finite."""

RATIO_TOLERANCE = 1e-3
SPIKE = 100.0
LARGE_LOGIT = 50.0


@dataclass(frozen=True)
class Check:
    """One check of the numbers of a run, and its result."""

    label: str
    state: State
    text: str


def checks(metrics: MetricsTable, events: list[dict[str, Any]]) -> list[Check]:
    """Return the checks for which metrics were logged."""
    found = [
        _finite(metrics, events),
        _ratio(_column(metrics, r"ratio_start$")),
        _gradient(_column(metrics, r"^learn/gradient_norm$")),
        _logits(_column(metrics, r"logit")),
    ]
    return [check for check in found if check is not None]


def _column(metrics: MetricsTable, pattern: str) -> Values | None:
    """Return the finite values of all metrics whose names match the pattern."""
    found = [values for name, values in metrics.columns.items() if re.search(pattern, name)]
    known = np.concatenate([values[np.isfinite(values)] for values in found]) if found else np.zeros(0)
    return known if len(known) else None


def _finite(metrics: MetricsTable, events: list[dict[str, Any]]) -> Check | None:
    stops = [event for event in events if NOT_FINITE in str(event.get("reason", ""))]
    wrong = list(metrics.not_finite)
    if stops:
        return Check("Finite numbers", "bad", str(stops[-1]["reason"]))
    if wrong:
        return Check("Finite numbers", "bad", f"NaN or Inf logged in {', '.join(wrong[:4])}")
    return Check("Finite numbers", "good", "no NaN or Inf") if metrics.rows else None


def _ratio(values: Values | None) -> Check | None:
    if values is None:
        return None
    off = float(np.abs(values - 1).max())
    if off == 0:
        return Check("Policy ratio before the first update", "good", "exactly 1 throughout")
    state: State = "good" if off <= RATIO_TOLERANCE else "bad"
    return Check("Policy ratio before the first update", state, f"at most {off:.1e} away from 1")


def _gradient(values: Values | None) -> Check | None:
    if values is None:
        return None
    middle, top = float(np.median(values)), float(values.max())
    spikes = top > SPIKE * max(middle, 1e-12)
    text = f"median {middle:.3g}, largest {top:.3g}"
    return Check("Gradient norm", "warn" if spikes else "good", text + (": it spikes" if spikes else ""))


def _logits(values: Values | None) -> Check | None:
    if values is None:
        return None
    top = float(values.max())
    state: State = "warn" if top > LARGE_LOGIT else "good"
    return Check("Largest logit", state, f"{top:.3g} at most")


def event_type(event: dict[str, Any]) -> str:
    """Return the type of an event, such as `checkpoint`."""
    return str(event.get("event", ""))
