"""Compare the policy with the baselines: intervals for each, and differences on the same instances."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.evaluation.bounds import Values
from edgewise.evaluation.result import Evaluation, measure_interval
from edgewise.evaluation.statistics import (
    Interval,
    difference_of_means,
    improvement_interval,
    interquartile_mean,
    mean_interval,
    paired_difference,
    score_interval,
)

InstanceSet = tuple[int, int, str]


@dataclass(frozen=True)
class Entrant:
    """A policy to compare: one evaluation, or one for each seed.

    Args:
        label: its name in the report.
        baseline: whether it is a baseline.
        evaluations: on one instance set, one per seed.
    """

    label: str
    baseline: bool
    evaluations: tuple[Evaluation, ...]

    def interval(self, measure: str) -> Interval | None:
        """Compute the mean of a measure over episodes, or over the means of seeds if there are several."""
        samples = self.samples(measure)
        return None if samples is None else measure_interval(measure, samples)

    def samples(self, measure: str) -> Values | None:
        """Return one value per episode, or per seed if there are several."""
        found = [one.measures().get(measure) for one in self.evaluations]
        defined = [values[np.isfinite(values)] for values in found if values is not None]
        defined = [values for values in defined if len(values)]
        if not defined:
            return None
        return defined[0] if len(self.evaluations) == 1 else np.array([values.mean() for values in defined])


@dataclass(frozen=True)
class Comparison:
    """The difference of two entrants, and how often the first is better; ties count half."""

    difference: Interval
    better: Interval
    over: str


def instance_set(evaluation: Evaluation) -> InstanceSet:
    """Return a key of the instances; evaluations with equal keys are comparable."""
    return evaluation.seed, evaluation.episodes, json.dumps(evaluation.settings, sort_keys=True, default=str)


def main_set(evaluations: Sequence[Evaluation]) -> InstanceSet | None:
    """Return the instance set of most evaluations of the policy."""
    counts = Counter(instance_set(one) for one in evaluations if not one.baseline)
    counts = counts or Counter(map(instance_set, evaluations))
    return counts.most_common(1)[0][0] if counts else None


def entrants(groups: dict[str, list[list[Evaluation]]], instances: InstanceSet) -> list[Entrant]:
    """Return the entrants on one instance set: the newest policy of each group, then each baseline once.

    Args:
        groups: label → evaluations of each of its runs.
        instances: the instance set.
    """
    policies: list[Entrant] = []
    baselines: dict[str, Entrant] = {}
    for label, runs in groups.items():
        here = [[one for one in run if instance_set(one) == instances] for run in runs]
        newest = [found[-1] for run in here if (found := [one for one in run if not one.baseline])]
        if newest:
            policies.append(Entrant(label if len(groups) > 1 else "this policy", False, tuple(newest)))
        for one in (one for run in here for one in run if one.baseline):
            baselines.setdefault(one.policy, Entrant(one.policy, True, (one,)))
    return [*policies, *baselines.values()]


def compare(left: Entrant, right: Entrant, measure: str, *, maximise: bool) -> Comparison | None:
    """Compare two entrants instance by instance, or run by run if there are several seeds."""
    ours, theirs = left.samples(measure), right.samples(measure)
    if ours is None or theirs is None:
        return None
    sign = 1 if maximise else -1
    if len(left.evaluations) == len(right.evaluations) == 1:
        ours, theirs = _paired(left.evaluations[0], right.evaluations[0], measure)
        if not len(ours):
            return None
        wins = 0.5 + 0.5 * np.sign(sign * (ours - theirs))
        return Comparison(
            difference=paired_difference(ours, theirs),
            better=score_interval(wins),
            over="instances",
        )
    if len(left.evaluations) > 1 and len(right.evaluations) > 1:
        gap, better = difference_of_means(ours, theirs), improvement_interval(sign * ours, sign * theirs)
        return Comparison(gap, better, "seeds")
    # Seeds against a policy of which there is one: its mean over the instances is a constant.
    seeds, level, side = (ours, theirs.mean(), 1) if len(left.evaluations) > 1 else (theirs, ours.mean(), -1)
    wins = 0.5 + 0.5 * np.sign(side * sign * (seeds - level))
    return Comparison(mean_interval(side * (seeds - level)), score_interval(wins), "seeds")


def _paired(left: Evaluation, right: Evaluation, measure: str) -> tuple[Values, Values]:
    """Return a measure of two policies on the instances where it is defined for both, in the same order."""
    ours, theirs = left.measures()[measure], right.measures()[measure]
    both = np.isfinite(ours) & np.isfinite(theirs)
    return ours[both], theirs[both]


def seeds_summary(entrant: Entrant, measure: str) -> float | None:
    """Compute the interquartile mean over seeds; None for a single one."""
    samples = entrant.samples(measure)
    if samples is None or len(entrant.evaluations) < 2:
        return None
    return float(interquartile_mean(samples))
