"""`edgewise sweep`: search settings of a recipe or an environment, by runs in child processes."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.cli.studies import add_jobs, add_source, child_program, train_words
from edgewise.config.run import AnyRun
from edgewise.experiments.load import load_config
from edgewise.runs.code import command
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.studies.sweep import SweepResult
    from edgewise.studies.trials import Trial

SHOWN = 10
"""Number of the best trials in the table."""


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = (
        "edgewise sweep WHAT --set NAME=FORM:VALUES [--set ...] [--trials N] [--jobs N] [--out FOLDER]\n"
        "                      [--SETTING VALUE ...]"
    )
    add_source(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=FORM:VALUES",
        help="setting to vary: log:LOW,HIGH and float:LOW,HIGH for numbers, logint: and int: for whole "
        "numbers, choice:A,B for others; may be given several times",
    )
    parser.add_argument(
        "--trials", type=whole_number(1), default=20, metavar="N", help="number of trials in all (20)"
    )
    add_jobs(parser)
    parser.add_argument(
        "--no-prune", action="store_true", help="train every trial to its end, however it compares"
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        help="folder of the sweep; if not given, the one in runs/ that this command continues, or a new one",
    )
    parser.examples(
        "edgewise sweep graphwalk-ppo --set learning_rate=log:1e-4,1e-2 --trials 50 --jobs 2",
        "edgewise sweep graphwalk-ppo --set epochs=int:1,8 --set model.encoder.kind=choice:transformer,gnn",
        "edgewise sweep tsp.py --set learning_rate=log:1e-4,1e-2 --total-frames 1e5",
        "edgewise sweep tsp.py --set learning_rate=log:1e-4,1e-2 --cpu-minutes 2",
    )


def run(options: Namespace, console: Console) -> int:
    """Run or continue the sweep, and show its best trials."""
    from edgewise.studies.proposals import check_optuna
    from edgewise.studies.space import parse_space
    from edgewise.studies.sweep import Sweep, check_space, run_sweep

    def load(further: Sequence[tuple[str, str]]) -> AnyRun:
        flags = [*options.settings, *further]
        return load_config(options.source, algorithm=options.algorithm, file=options.config, flags=flags)

    check_optuna()
    config = load(())
    space = parse_space(type(config), options.set)
    check_space(space, load)
    result = run_sweep(
        Sweep(config, tuple(train_words(options)), space, prune=not options.no_prune),
        trials=options.trials,
        jobs=options.jobs,
        out=options.out,
        program=child_program(options),
    )
    console.show(_plain(result), _text(result, config.evaluation.metric, maximise=config.evaluation.maximise))
    return 0


def _plain(result: SweepResult) -> dict[str, Any]:
    return {
        "study": str(result.folder),
        "report": str(result.report),
        "best_config": None if result.best_config is None else str(result.best_config),
        "best": None if result.best is None else _trial(result.best),
        "importances": result.importances,
        "trials": [_trial(trial) for trial in result.trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "params": dict(trial.params),
        "state": trial.state,
        "value": trial.value,
        "frames": trial.frames,
        "reason": trial.reason,
    }


def _text(result: SweepResult, metric: str, *, maximise: bool) -> str:
    """Format the best trials, the importances and where the files are."""
    complete = [trial for trial in result.trials if trial.state == "complete" and trial.value is not None]
    complete.sort(key=lambda trial: -(trial.value or 0.0) if maximise else (trial.value or 0.0))
    names = list(result.trials[0].params) if result.trials else []
    rows = [[trial.name, trial.value, *(trial.params[name] for name in names)] for trial in complete[:SHOWN]]
    counts = Counter(trial.state for trial in result.trials)
    parts = [
        ", ".join(f"{count} {state}" for state, count in counts.items()),
        table(["trial", metric, *names], rows) if rows else "no trial is complete",
    ]
    if result.importances:
        parts.append(table(["setting", "importance"], list(result.importances.items())))
    places = [f"study:       {result.folder}", f"report:      {result.report}"]
    if result.best is not None and result.best_config is not None:
        best = command("train", result.best_config, run=result.folder / "runs" / result.best.name)
        places.append(f"best config: {result.best_config}, which `{best}` trains")
    return "\n\n".join([*parts, "\n".join(places)])
