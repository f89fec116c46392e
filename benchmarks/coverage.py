"""Simulate how often the intervals that edgewise prints cover the truth.

    python -m benchmarks.coverage --repeats 20000

One line for each interval and distribution: the share of simulated experiments whose 95 % interval holds the
true value, with n = 3, 5, 10, 30 and 100 samples; the share of experiments in which the interval is refused,
where that is not zero; and the smallest width.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from edgewise.evaluation import bounds
from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.ratings import POINTS, fit, rate
from edgewise.evaluation.bounds import Values
from edgewise.evaluation.statistics import LEVEL, improvement_interval

COUNTS = (3, 5, 10, 30, 100)
Generator = np.random.Generator
Simulation = Callable[[Generator, int, int], tuple[Values, Values, Values | float]]
"""From a generator, the number of experiments and of samples in each: bounds `[R]` and the truth."""


@dataclass(frozen=True)
class Case:
    """An interval on samples of one distribution.

    Args:
        interval: what is estimated.
        samples: the distribution.
        simulate: draws experiments.
        slow: divides the number of experiments.
        discrete: whether the samples are counts, which no method covers exactly.
    """

    interval: str
    samples: str
    simulate: Simulation
    slow: int = 1
    discrete: bool = False


@dataclass(frozen=True)
class Coverage:
    """What one simulation gave: shares of experiments, and the smallest width of an interval."""

    covered: float
    refused: float
    narrowest: float


def measure(case: Case, count: int, *, repeats: int, seed: int = 0) -> Coverage:
    """Simulate a case with `count` samples."""
    generator = np.random.default_rng([seed, count])
    low, high, truth = case.simulate(generator, max(repeats // case.slow, 100), count)
    known = ~(np.isnan(low) | np.isnan(high))
    if not known.any():
        return Coverage(np.nan, 1.0, np.nan)
    covered = ((low <= truth) & (truth <= high))[known].mean()
    return Coverage(float(covered), float(1 - known.mean()), float((high - low)[known].min()))


def skewed(generator: Generator, *size: int) -> Values:
    """Draw from the exponential distribution: skewness 2, mean 1."""
    return generator.exponential(size=size)


def cases() -> Iterator[Case]:
    """Return all cases."""
    yield Case("mean", "normal", lambda g, r, n: (*bounds.mean_bounds(g.normal(size=(r, n)), LEVEL), 0.0))
    yield Case("mean", "skewed", lambda g, r, n: (*bounds.mean_bounds(skewed(g, r, n), LEVEL), 1.0))
    yield Case("mean", "skewed down", lambda g, r, n: (*bounds.mean_bounds(-skewed(g, r, n), LEVEL), -1.0))
    yield Case("mean", "uniform", lambda g, r, n: (*bounds.mean_bounds(g.random((r, n)), LEVEL), 0.5))
    for share in (0.9, 0.95, 0.99):
        yield Case("share", f"{share}", _share(share), discrete=True)
    yield Case("share", "between 0.9 and 1", _share(None), discrete=True)
    yield Case("paired difference", "normal", lambda g, r, n: _paired(g.normal(size=(2, r, n)), 0.0))
    yield Case("paired difference", "skewed", lambda g, r, n: _paired(skewed(g, 2, r, n), 0.0))
    yield Case("paired difference", "shares near 1", _paired_shares, discrete=True)
    yield Case("difference of runs", "normal", lambda g, r, n: _unpaired(*g.normal(size=(2, r, n)), 0.0))
    yield Case(
        "difference of runs",
        "normal, spread 1 and 3",
        lambda g, r, n: _unpaired(g.normal(size=(r, n)), 3 * g.normal(size=(r, n)), 0.0),
    )
    yield Case("difference of runs", "skewed", lambda g, r, n: _unpaired(*skewed(g, 2, r, n), 0.0))
    yield Case(
        "difference of runs",
        "skewed and normal",
        lambda g, r, n: _unpaired(skewed(g, r, n), g.normal(size=(r, n)), 1.0),
    )
    yield Case("ratio", "normal", _normal_ratio, slow=5)
    yield Case("ratio", "skewed", lambda g, r, n: _ratio(*skewed(g, 2, r, n), 1.0), slow=5)
    yield Case("ratio", "skewed and normal", _mixed_ratio, slow=5)
    yield Case("IQM, 1 task", "normal", lambda g, r, n: _middle(g.normal(size=(r, n, 1)), 0.0))
    yield Case("IQM, 1 task", "skewed", lambda g, r, n: _middle(skewed(g, r, n, 1), _middle_of_skewed()))
    yield Case("IQM, 5 tasks", "normal", lambda g, r, n: _middle(g.normal(size=(r, n, 5)), 0.0))
    yield Case("IQM, 5 tasks", "skewed", lambda g, r, n: _middle(skewed(g, r, n, 5), _middle_of_skewed()))
    yield Case("mean of 5 tasks", "normal", lambda g, r, n: _strata(g.normal(size=(r, n, 5)), 0.0))
    yield Case("mean of 5 tasks", "skewed", lambda g, r, n: _strata(skewed(g, r, n, 5), 1.0))
    for shift in (0.0, 1.0, 2.0):
        yield Case("improvement", f"{float(ndtr(shift / 2**0.5)):.2f}", _improvement(shift, 1), slow=20)
    yield Case("improvement, 5 tasks", "0.50", _improvement(0.0, 5), slow=40)
    yield Case("profile, 5 tasks", "shares 0.5 to 0.99", _profile, discrete=True)
    yield Case("score of a match", "pairs, score 0.5", _match(0.0, 1.5), discrete=True)
    yield Case("score of a match", "pairs, score near 0.9", _match(2.2, 0.0), discrete=True)
    yield Case(
        "rating, 2 players", "300 points", _rating(np.array([0.0, 300.0]), 0.0), slow=40, discrete=True
    )
    strengths = np.array([0.0, 100.0, 250.0, 400.0])
    yield Case("rating, 4 players", "400 points", _rating(strengths, 0.0), slow=40, discrete=True)
    yield Case(
        "rating, 4 players", "400 points, openings decide", _rating(strengths, 1.5), slow=40, discrete=True
    )


def _share(share: float | None) -> Simulation:
    def simulate(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, Values | float]:
        truth = generator.uniform(0.9, 1.0, repeats) if share is None else np.full(repeats, share)
        return (*bounds.share_bounds(generator.binomial(count, truth), count, LEVEL), truth)

    return simulate


def _paired(values: Values, truth: float) -> tuple[Values, Values, float]:
    shared = values[0].mean(-1, keepdims=True)
    return (*bounds.mean_bounds((values[0] + shared) - (values[1] + shared), LEVEL), truth)


def _paired_shares(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
    better, worse = generator.multinomial(count, [0.06, 0.02, 0.92], size=repeats).T[:2]
    return (*bounds.sign_bounds(better, worse, count, LEVEL), 0.04)


def _unpaired(left: Values, right: Values, truth: float) -> tuple[Values, Values, float]:
    return (*bounds.difference_bounds(left, right, LEVEL), truth)


def _ratio(left: Values, right: Values, truth: float) -> tuple[Values, Values, float]:
    return (*bounds.ratio_bounds(left, right, LEVEL), truth)


def _normal_ratio(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
    instance, ours, theirs = generator.normal(size=(3, repeats, count))
    return _ratio(10 + instance + ours, 5 + 0.5 * instance + 0.5 * theirs, 2.0)


def _mixed_ratio(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
    return _ratio(skewed(generator, repeats, count), 5 + generator.normal(size=(repeats, count)), 0.2)


def _middle(table: Values, truth: float) -> tuple[Values, Values, float]:
    return (*bounds.interquartile_bounds(table, LEVEL), truth)


def _middle_of_skewed() -> float:
    """Return the interquartile mean of the exponential distribution: twice the integral of its quantiles."""

    def integral(p: float) -> float:
        return float((1 - p) * np.log(1 - p) + p)

    return 2 * (integral(0.75) - integral(0.25))


def _strata(table: Values, truth: float) -> tuple[Values, Values, float]:
    tasks = table.shape[-1]
    strata = [table[..., task] / tasks for task in range(tasks)]
    return (*bounds.strata_bounds(table.mean((-1, -2)), strata, LEVEL), truth)


def _improvement(shift: float, tasks: int) -> Simulation:
    def simulate(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
        found = [
            improvement_interval(
                generator.normal(size=(count, tasks)) + shift, generator.normal(size=(count, tasks))
            )
            for _ in range(repeats)
        ]
        low, high = np.array([(one.low, one.high) for one in found]).T
        return low, high, float(ndtr(shift / 2**0.5))

    return simulate


def _profile(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
    shares = np.array([0.5, 0.7, 0.9, 0.95, 0.99])
    hits = generator.binomial(count, shares, size=(repeats, 5)).astype(np.float64)
    found = bounds.combined_bounds(hits / count, *bounds.share_bounds(hits, count, LEVEL))
    return (*found, float(shares.mean()))


def _match(strength: float, opening: float) -> Simulation:
    """Return a simulation of pairs of games in which an opening favours the first player by some log-odds."""

    def simulate(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
        scores = _pairs(generator, strength, opening, (repeats, count))
        won, lost = (scores == 1).sum(-1), (scores == 0).sum(-1)
        return (*bounds.score_bounds(won, lost, count, LEVEL), _expected(strength, opening))

    return simulate


def _pairs(generator: Generator, strength: float, opening: float, size: tuple[int, ...]) -> Values:
    favour = generator.normal(size=size) * opening
    games = [generator.random(size) < _logistic(strength + side * favour) for side in (1, -1)]
    return (games[0].astype(np.float64) + games[1]) / 2


def _expected(strength: float, opening: float) -> float:
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    return float((_logistic(strength + opening * points) * weights).sum() / weights.sum())


def _logistic(odds: Values | float) -> Values:
    return 1 / (1 + np.exp(-np.asarray(odds)))


def _rating(ratings: Values, opening: float) -> Simulation:
    """Return a simulation of the last player's rating, with `count` pairs of games in every match."""
    strengths, count_players = ratings / POINTS, len(ratings)
    names = [str(player) for player in range(count_players)]
    expected = np.array([[_expected(a - b, opening) for b in strengths] for a in strengths])
    games = 1 - np.eye(count_players)
    fitted = fit(expected * games, games)
    truth = float(POINTS * (fitted[-1] - fitted[0]))

    def simulate(generator: Generator, repeats: int, count: int) -> tuple[Values, Values, float]:
        found = []
        for _ in range(repeats):
            matches = {}
            for row in range(count_players):
                for column in range(row + 1, count_players):
                    scores = _pairs(generator, strengths[row] - strengths[column], opening, (count,))
                    matches[row, column] = Match(scores, scores, np.zeros((2, count)))
            rating = rate(names, matches, anchor="0")[-1].rating
            found.append((rating.low, rating.high))
        low, high = np.array(found).T
        return low, high, truth

    return simulate


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20_000, help="experiments in each cell (20000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [
        (case, {count: measure(case, count, repeats=options.repeats) for count in COUNTS}) for case in cases()
    ]
    if options.json:
        plain = [
            {"interval": case.interval, "samples": case.samples, "n": count, **vars(one)}
            for case, found in rows
            for count, one in found.items()
        ]
        print(json.dumps(plain))
        return
    print("| interval | samples | " + " | ".join(f"n = {count}" for count in COUNTS) + " | smallest width |")
    print("|---" * (len(COUNTS) + 3) + "|")
    for case, found in rows:
        name = f"{case.samples}{' (discrete)' if case.discrete else ''}"
        narrowest = np.nanmin([one.narrowest for one in found.values()])
        cells = " | ".join(map(_cell, found.values()))
        print(f"| {case.interval} | {name} | {cells} | {narrowest:.2g} |", flush=True)


def _cell(found: Coverage) -> str:
    if found.refused == 1.0:
        return "refused"
    refused = f" ({100 * found.refused:.0f} refused)" if found.refused >= 0.005 else ""
    return f"{100 * found.covered:.1f}{refused}"


if __name__ == "__main__":
    main()
