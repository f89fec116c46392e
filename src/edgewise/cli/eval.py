"""`edgewise eval`: how trained policies do on fixed instances, beside baselines, over sizes and seeds."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.config.plugins import evaluation_modes
from edgewise.experiments.load import load_config
from edgewise.experiments.recipes import recipe
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole
from edgewise.terminal.sweep import combinations, given_settings

if TYPE_CHECKING:
    from edgewise.evaluation.result import Evaluation


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.takes_settings = True
    parser.usage = "edgewise eval RUN [RUN ...] [options] [--SETTING VALUE,VALUE ...]"
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", type=Path, help="run folders; several are taken for seeds"
    )
    parser.add_argument(
        "--episodes", type=whole(1), metavar="N", help="instances; as in the run if not given"
    )
    parser.add_argument(
        "--baselines", metavar="NAMES", default="", help="policies beside, with commas, or `all`"
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="which weights (best)"
    )
    parser.add_argument("--stochastic", action="store_true", help="let policies draw their actions")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=A,B",
        help="other values of a field of the environment; every combination is measured",
    )
    for mode in evaluation_modes():
        mode.add_arguments(parser)
    parser.add_machine()
    parser.examples(
        "edgewise eval runs/graphwalk-ppo-1 --baselines all",
        "edgewise eval runs/graphwalk-ppo-1 --num-nodes 8,16,32 --episodes 200",
        "edgewise eval runs/graphwalk-ppo-1 --set env.num_nodes=[4,8],[20,40]",
        "edgewise eval runs/graphwalk-ppo-1 runs/graphwalk-ppo-2 runs/graphwalk-ppo-3 --json",
        "edgewise eval runs/reasoning-countries-1 --mode rl --negatives all",
    )


def run(options: Namespace, console: Console) -> int:
    """Measures every run at every combination of settings."""
    from edgewise.training.run_folder import RunFolder

    configs = [load_config(RunFolder(run).config_file) for run in options.runs]
    config, kinds = configs[0], sorted({recipe(one.recipe).env for one in configs})
    if len(kinds) > 1:
        raise ConfigError(f"all runs must be of one environment, got {', '.join(kinds)}")
    for mode in evaluation_modes():
        if mode.asked_for(options):
            _refuse(_idle(options), f"{mode.FLAG} {mode.PLAYS_NO_EPISODES}", "leave them out")
            if recipe(config.recipe).env not in mode.ENVIRONMENTS:
                raise ConfigError(
                    f"{mode.FLAG} {mode.MEANING}, and {options.runs[0]} is of another kind",
                    hint=f"leave {mode.FLAG} out",
                )
            prepare(threads=options.threads)
            return mode.run(options, console)
        _refuse(
            mode.given(options),
            f"without {mode.FLAG} nothing is ranked",
            f"give {mode.FLAG} too, or leave them out",
        )
    chosen = combinations(config.env, given_settings(options.set, options.settings))
    prepare(threads=options.threads)
    from edgewise.experiments.build import check_device
    from edgewise.terminal.outcome import summary, summary_table

    check_device(options.device or "cpu")
    measured = [_measure(options, settings) for settings in chosen]
    over_seeds = _over_seeds(measured) if len(options.runs) > 1 else []
    flat = [evaluation for evaluations in measured for evaluation in evaluations]
    data = {"results": [summary(evaluation) for evaluation in flat], "over_seeds": over_seeds}
    text = summary_table(flat)
    if over_seeds:
        rows = [[row["settings"], row["measure"], row["runs"], _span(row)] for row in over_seeds]
        text += "\n\n" + table(["settings", "measure", "runs", "interquartile mean over runs"], rows)
    console.show(data, text)
    return 0


def _idle(options: Namespace) -> list[str]:
    """Options that were given though ranking has no use for them."""
    names = [name for name in ("episodes", "baselines", "stochastic", "set", "device") if vars(options)[name]]
    return [*names, *(flag for flag, _ in options.settings)]


def _refuse(names: Iterable[str], why: str, hint: str) -> None:
    """Refuses options that would change nothing."""
    flags = [f"--{name.removeprefix('--').replace('_', '-')}" for name in names]
    if flags:
        raise ConfigError(f"{', '.join(flags)}: {why}", hint=hint)


def _measure(options: Namespace, settings: dict[str, Any]) -> list[Evaluation]:
    """Every run at one combination of settings, and the baselines once."""
    from edgewise.experiments.measure import measure_run

    baselines = [name for name in options.baselines.split(",") if name]
    found: list[Evaluation] = []
    for index, folder in enumerate(options.runs):
        found += measure_run(
            folder,
            settings=settings,
            episodes=options.episodes,
            seed=options.seed,
            which=options.checkpoint,
            baselines=baselines if index == 0 else (),
            deterministic=not options.stochastic,
            device=options.device,
        )
    return found


def _over_seeds(measured: list[list[Evaluation]]) -> list[dict[str, Any]]:
    """The interquartile mean of every measure over runs, at each setting, with its bootstrap interval."""
    import numpy as np

    from edgewise.evaluation.statistics import stratified_interval

    rows = []
    for runs in _alike(measured):
        for name in runs[0].measures():
            means = [float(np.nanmean(one.measures()[name])) for one in runs]
            interval = stratified_interval(means, generator=np.random.default_rng(0))
            rows.append(
                {
                    "settings": dict(runs[0].settings),
                    "measure": name,
                    "runs": len(runs),
                    "iqm": interval.estimate,
                    "low": interval.low,
                    "high": interval.high,
                }
            )
    return rows


def _alike(measured: list[list[Evaluation]]) -> list[list[Evaluation]]:
    """Results of all runs on the same kind of instances, kind by kind."""
    groups: dict[str, list[Evaluation]] = {}
    for index, evaluations in enumerate(measured):
        for evaluation in evaluations:
            if not evaluation.baseline:
                groups.setdefault(f"{index} {dict(evaluation.settings)}", []).append(evaluation)
    return list(groups.values())


def _span(row: dict[str, Any]) -> str:
    return f"{row['iqm']:.4g} [{row['low']:.4g}, {row['high']:.4g}]"
