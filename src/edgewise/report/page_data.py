"""Build the data of the page as plain JSON, which the script of the page draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from edgewise.evaluation.result import Evaluation
from edgewise.report import ablations, comparison, curves, health, timeline
from edgewise.report.metrics_table import CLOCKS, Curve
from edgewise.report.numbers import numbers, plain_interval
from edgewise.report.run_data import RunData
from edgewise.runs.code import command

MAX_COLOURS = 6
TRAINING = "episode/"
"""Prefix of metrics of training episodes."""
EVALUATION = "evaluation/"
"""Prefix of metrics of evaluations, which are read from their own files instead."""
Json = dict[str, Any]


def build_page_data(runs: Sequence[RunData]) -> Json:
    """Build the data of the page of one run, or of several side by side."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        groups.setdefault(run.label, []).append(run)
    measure, maximise = _measure(runs[0])
    main = comparison.main_set([one for run in runs for one in run.evaluations])
    first = runs[0]
    return {
        "title": first.name if len(runs) == 1 else ", ".join(groups),
        "runs": [timeline.facts(run) for run in runs],
        "clock": first.metrics.clock if first.metrics.rows else "frames",
        "end": max((timeline.facts(run)["frames"] or 0.0 for run in runs), default=0.0) or None,
        "measure": {"name": measure, "maximise": maximise},
        "over": _over(groups),
        "headline": _headline(groups, main, measure),
        "evaluation": _evaluation_charts(groups, main, measure),
        "comparison": _comparison(groups, main, measure, maximise=maximise),
        "sweep": _sweep(groups, main, measure),
        "ablate": command("eval", first.folder, "--ablate", "edges,nodes", run=first.folder),
        "used": [{"run": run.name, **row} for run in runs for row in ablations.used(run.ablations)],
        "stages": timeline.stages(first) if len(runs) == 1 else [],
        "training": _metric_charts(groups, healthy=False),
        "health": {
            "runs": [
                {
                    "name": run.name,
                    "status": timeline.status(run.events),
                    "checks": [asdict(check) for check in health.checks(run.metrics, run.events)],
                    "events": timeline.log(run),
                }
                for run in runs
            ],
            "charts": _metric_charts(groups, healthy=True),
        },
        "replays": [{"run": run.name, **asdict(episode)} for run in runs for episode in run.replays],
        "configs": [{"name": run.name, "config": run.config, "versions": run.versions} for run in runs],
        "differing": _differing(runs),
        "footer": f"edgewise {first.versions.get('edgewise', '')}, from the run folder alone",
        "notes": [note if len(runs) == 1 else f"{run.name}: {note}" for run in runs for note in run.notes],
    }


def _differing(runs: Sequence[RunData]) -> list[Json]:
    """Return the settings in which runs differ, with the value of each run."""
    flat = [dict(_leaves(run.config)) for run in runs]
    names = dict.fromkeys(name for one in flat for name in one)
    found = [(name, [one.get(name) for one in flat]) for name in names]
    return [
        {"setting": name, "values": values} for name, values in found if any(v != values[0] for v in values)
    ]


def _leaves(config: Json, within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


def _measure(run: RunData) -> tuple[str, bool]:
    """Return the metric that decides the best checkpoint, and whether it is maximised."""
    settings = run.config.get("evaluation")
    settings = settings if isinstance(settings, dict) else {}
    return str(settings.get("metric", "return")), bool(settings.get("maximise", True))


def _over(groups: dict[str, list[RunData]]) -> str:
    """Return what intervals of trained policies are over, in words."""
    counts = [len(runs) for runs in groups.values()]
    if max(counts) == 1:
        return "episodes"
    return "seeds" if min(counts) > 1 else "seeds, or over episodes where there is one seed"


def _on_main_set(main: comparison.InstanceSet | None, run: RunData) -> list[Evaluation]:
    """Return the evaluations of a run's policy on the main instance set."""
    return [one for one in run.evaluations if not one.baseline and comparison.instance_set(one) == main]


def _headline(
    groups: dict[str, list[RunData]], main: comparison.InstanceSet | None, measure: str
) -> list[Json]:
    """Return the newest values of the first group."""
    if main is None:
        return []
    found = comparison.entrants(_evaluations(groups), main)
    policy = next((one for one in found if not one.baseline), None)
    if policy is None:
        return []
    tiles = []
    for name in _measures(policy.evaluations, measure)[:4]:
        interval = policy.interval(name)
        if interval is not None:
            label = name if len(groups) == 1 else f"{policy.label}: {name}"
            over = "seed" if len(policy.evaluations) > 1 else "episode"
            tiles.append({"label": label, "interval": plain_interval(interval), "over": over})
    return tiles


def _evaluation_charts(
    groups: dict[str, list[RunData]], main: comparison.InstanceSet | None, measure: str
) -> list[Json]:
    """Return one chart per measure, the main one first, with a curve per group and a level per baseline."""
    everything = [one for runs in groups.values() for run in runs for one in run.evaluations]
    charts = []
    for name in _measures(everything, measure):
        lines = []
        for colour, (label, runs) in enumerate(groups.items()):
            per_run = [curves.evaluation_curve(_on_main_set(main, run), name) for run in runs]
            found = [curve for curve in per_run if curve is not None]
            if found:
                curve = found[0] if len(found) == 1 else curves.mean_curve(found)
                lines.append({"label": label, "colour": colour % MAX_COLOURS, **_curve(curve)})
        if any(len(line["x"]) > 1 for line in lines) or (lines and name == measure):
            behind = _behind(groups, name) if name == measure else None
            charts.append(
                {"name": name, "lines": lines, "levels": _levels(groups, main, name), "behind": behind}
            )
    return charts


def _behind(groups: dict[str, list[RunData]], name: str) -> Json | None:
    """Return the same measure of training episodes, for a single group."""
    tables = [run.metrics for runs in groups.values() for run in runs]
    curve = curves.metric_curve(tables, f"{TRAINING}{name}") if len(groups) == 1 else None
    return None if curve is None else _curve(curve)


def _levels(groups: dict[str, list[RunData]], main: comparison.InstanceSet | None, name: str) -> list[Json]:
    """Return the mean of each baseline."""
    if main is None:
        return []
    found = comparison.entrants(_evaluations(groups), main)
    levels = [(one.label, one.interval(name)) for one in found if one.baseline]
    return [{"label": label, **plain_interval(level)} for label, level in levels if level is not None]


def _comparison(
    groups: dict[str, list[RunData]], main: comparison.InstanceSet | None, measure: str, *, maximise: bool
) -> Json | None:
    """Return all entrants on the same instances, and the policy compared with each other one."""
    if main is None:
        return None
    found = comparison.entrants(_evaluations(groups), main)
    measures = _measures([one for entrant in found for one in entrant.evaluations], measure)
    rows = [_row(entrant, measures) for entrant in found]
    against = []
    for other in found[1:]:
        versus = comparison.compare(found[0], other, measure, maximise=maximise)
        if versus is not None and not found[0].baseline:
            difference, better = plain_interval(versus.difference), plain_interval(versus.better)
            against.append(
                {"label": other.label, "difference": difference, "better": better, "over": versus.over}
            )
    seed, episodes, settings = main
    return {
        "measures": measures,
        "rows": rows,
        "against": against,
        "seed": seed,
        "episodes": episodes,
        "settings": settings if settings != "{}" else None,
    }


def _row(entrant: comparison.Entrant, measures: list[str]) -> Json:
    newest = entrant.evaluations[-1]
    intervals = {name: entrant.interval(name) for name in measures}
    return {
        "label": entrant.label,
        "baseline": entrant.baseline,
        "frames": None if entrant.baseline else newest.frames,
        "seeds": len(entrant.evaluations),
        "intervals": {name: plain_interval(one) for name, one in intervals.items() if one is not None},
        "iqm": {name: comparison.seeds_summary(entrant, name) for name in measures},
    }


def _sweep(groups: dict[str, list[RunData]], main: comparison.InstanceSet | None, measure: str) -> list[Json]:
    """Return the newest evaluation of each policy on every further instance set."""
    newest: dict[tuple[str, str, str], tuple[str, Evaluation]] = {}
    for label, runs in groups.items():
        for one in (one for run in runs for one in run.evaluations):
            if (instances := comparison.instance_set(one)) != main:
                newest[(label, one.policy, repr(instances))] = (label, one)
    rows = []
    for label, one in newest.values():
        interval = comparison.Entrant(one.policy, one.baseline, (one,)).interval(measure)
        who = one.policy if one.baseline else label
        settings = [f"{key} = {value}" for key, value in one.settings.items()] or [f"seed = {one.seed}"]
        if interval is not None:
            row = {"label": who, "baseline": one.baseline, "settings": ", ".join(settings)}
            rows.append({**row, "episodes": one.episodes, "interval": plain_interval(interval)})
    return sorted(rows, key=lambda row: (row["settings"], row["baseline"], row["label"]))


def _metric_charts(groups: dict[str, list[RunData]], *, healthy: bool) -> list[Json]:
    """Return a chart for each logged metric, either of numerical health or of learning."""
    tables = {label: [run.metrics for run in runs] for label, runs in groups.items()}
    names = dict.fromkeys(name for many in tables.values() for table in many for name in table.columns)
    charts = []
    for name in names:
        if (
            name in CLOCKS
            or name.startswith(EVALUATION)
            or bool(health.HEALTH_METRICS.search(name)) != healthy
        ):
            continue
        found = [(label, curves.metric_curve(many, name)) for label, many in tables.items()]
        lines = [
            {"label": label, "colour": colour % MAX_COLOURS, **_curve(curve)}
            for colour, (label, curve) in enumerate(found)
            if curve is not None
        ]
        family, _, short = name.rpartition("/")
        if lines:
            charts.append({"family": family, "name": short, "lines": lines, "levels": []})
    return charts


def _evaluations(groups: dict[str, list[RunData]]) -> dict[str, list[list[Evaluation]]]:
    return {label: [run.evaluations for run in runs] for label, runs in groups.items()}


def _measures(evaluations: Sequence[Evaluation], measure: str) -> list[str]:
    """Return the names of all measures, the main one first."""
    names = dict.fromkeys(name for one in evaluations for name in one.measures())
    return sorted(names, key=lambda name: name != measure)


def _curve(curve: Curve) -> Json:
    found = {name: numbers(getattr(curve, name)) for name in ("x", "y", "low", "high")}
    return found | ({"cut": curve.cut.to_plain()} if curve.cut is not None else {})
