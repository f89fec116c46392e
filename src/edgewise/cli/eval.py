"""`edgewise eval`: evaluate policies on fixed instances, with baselines, over settings and seeds."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.load import load_config
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number
from edgewise.terminal.sweep import combinations, given_settings

if TYPE_CHECKING:
    from edgewise.evaluation.episodes import Progress
    from edgewise.evaluation.result import Evaluation


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = "edgewise eval RUN [RUN ...] [options] [--SETTING VALUE,VALUE ...]"
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        type=run_path,
        help="run folders or zoo:NAME; several are aggregated over seeds",
    )
    parser.add_argument(
        "--episodes",
        type=whole_number(1),
        metavar="N",
        help="number of instances; as in the run if not given",
    )
    parser.add_argument(
        "--baselines",
        metavar="NAMES",
        default="",
        help="baselines for comparison, separated by commas, or `all`",
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to load (best)"
    )
    parser.add_argument(
        "--stochastic", action="store_true", help="sample actions instead of taking the mode of the policy"
    )
    parser.add_argument(
        "--decode",
        metavar="HOW",
        help="play several episodes of each instance and keep the best by return: sample:N, multistart, "
        "multistart:N (first actions), beam:K, guided:K or active:N (rounds); search:N plays one, by a "
        "tree search with the critic, and greedy the most probable one",
    )
    parser.add_argument(
        "--ablate",
        metavar="WHAT",
        help="act without something as well, and compare on the same instances: edges, nodes, memory or "
        "an entry of the observation such as x[2], pos or agents.ego; several separated by commas. In games "
        "of two players by matches: against itself without it, and both against each opponent in --baselines "
        "(those of the run's evaluation)",
    )
    parser.add_argument(
        "--against",
        metavar="NAMES",
        help="compare with baselines or other runs on the same instances, pair by pair: difference and ratio "
        "with intervals; several separated by commas",
    )
    parser.add_argument(
        "--measures",
        metavar="NAMES",
        help="measures to show, separated by commas, or `all` (those that fit into the window)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=A,B",
        help="set a field of the environment; every combination is evaluated",
    )
    parser.add_machine()
    parser.examples(
        "edgewise eval runs/graphwalk-ppo-1 --baselines all",
        "edgewise eval runs/graphwalk-ppo-1 --num-nodes 8,16,32 --episodes 200",
        "edgewise eval runs/graphwalk-ppo-1 --decode sample:16",
        "edgewise eval runs/graphwalk-ppo-1 --ablate edges,x[0] --episodes 500",
        "edgewise eval runs/graphwalk-ppo-1 --against shortest_path,runs/graphwalk-ppo-2 --measures success",
        "edgewise eval runs/graphwalk-ppo-1 --set env.num_nodes=[4,8],[20,40]",
        "edgewise eval runs/graphwalk-ppo-1 runs/graphwalk-ppo-2 runs/graphwalk-ppo-3 --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Evaluate every run at every combination of settings."""
    from edgewise.runs.folder import RunFolder

    configs = [load_config(RunFolder(run).config_file) for run in options.runs]
    config, kinds = configs[0], sorted({one.env_name for one in configs})
    if len(kinds) > 1:
        raise ConfigError(f"all runs must be of one environment, got {', '.join(kinds)}")
    _check_decoding(options)
    if options.ablate and options.against:
        raise ConfigError("--ablate and --against are two comparisons", hint="give one of them")
    requests = [
        _request(options, settings)
        for settings in combinations(config.env, given_settings(options.set, options.settings))
    ]
    prepare(threads=options.threads)
    from edgewise.runs.code import code_changes
    from edgewise.scale.devices import check_device
    from edgewise.terminal.outcome import decoding_note, summary, summary_table

    check_device(options.device or "cpu")
    _note_threads(configs, options, console)
    if options.ablate or options.against:
        return _compare(options, requests, console)
    evaluated, first = [], config.evaluation.metric
    for request in requests:
        evaluated.append(_evaluate(options, request))
        if len(requests) > 1:
            console.note(summary_table(evaluated[-1], measures=_names(options.measures or ""), first=first))
    over_seeds = _over_seeds(evaluated) if len(options.runs) > 1 else []
    flat = [evaluation for evaluations in evaluated for evaluation in evaluations]
    data: dict[str, Any] = {"results": [summary(evaluation) for evaluation in flat], "over_seeds": over_seeds}
    changes = [
        change for one, run in zip(configs, options.runs, strict=True) for change in code_changes(one, run)
    ]
    if changes:
        data["changed_code"] = changes
    text = summary_table(flat, measures=_names(options.measures or ""), first=first)
    if note := decoding_note(flat):
        text += f"\n\n{note}"
    if over_seeds:
        rows = [
            [row["settings"], row["measure"], _span(row, "mean", ""), _span(row, "iqm", "iqm_")]
            for row in over_seeds
        ]
        text += "\n\n" + table(["settings", "measure", "mean over runs", "interquartile mean"], rows)
    console.show(data, text)
    return 0


def _note_threads(configs: Sequence[AnyRun], options: Namespace, console: Console) -> None:
    """Say where the number of threads is not that of training, since sums are then rounded differently."""
    for config, run in zip(configs, options.runs, strict=True):
        if config.threads != options.threads:
            console.note(
                f"{run} was trained with {config.threads} threads, so results may differ in the last digits "
                f"from its own evaluations; --threads {config.threads} gives the same"
            )


def _request(options: Namespace, settings: Mapping[str, Any]) -> EvaluationRequest:
    return EvaluationRequest(
        episodes=options.episodes,
        seed=options.seed,
        settings=settings,
        checkpoint=options.checkpoint,
        baselines=tuple(_names(options.baselines)),
        deterministic=not options.stochastic,
        decode=options.decode,
        device=options.device,
    )


def _compare(options: Namespace, requests: Sequence[EvaluationRequest], console: Console) -> int:
    """Compare each run with others, or with itself without something, at every combination of settings."""
    from edgewise.terminal.outcome import paired_table

    game = bool(options.ablate) and _are_games(options.runs)
    unused = ["decode", *(["stochastic"] if options.ablate else []), *([] if game else ["baselines"])]
    flag = "--ablate" if options.ablate else "--against"
    _check_unused([name for name in unused if vars(options)[name]], f"has no effect with {flag}", "omit them")
    pairs = _ablated_in_games if game else _ablated if options.ablate else _against
    rows = [row for request in requests for row in pairs(options, request)]
    if options.measures and options.measures != "all":
        rows = _of_measures(rows, _names(options.measures))
    console.show({"ablations" if options.ablate else "pairs": rows}, paired_table(rows))
    return 0


def _against(options: Namespace, request: EvaluationRequest) -> list[dict[str, Any]]:
    from edgewise.evaluation.paired import paired_rows
    from edgewise.experiments.comparison import compare_runs

    pairs = compare_runs(options.runs, _names(options.against), request)
    return [row for pair in pairs for row in paired_rows(*pair)]


def _ablated(options: Namespace, request: EvaluationRequest) -> list[dict[str, Any]]:
    from edgewise.experiments.ablations import ablation_rows, save_ablations
    from edgewise.experiments.evaluate import evaluate_ablations

    rows = []
    for folder in options.runs:
        pairs = evaluate_ablations(folder, _names(options.ablate), request)
        found = [row for whole, ablated in pairs for row in ablation_rows(whole, ablated)]
        save_ablations(folder, found)
        rows += found
    return rows


def _are_games(runs: Sequence[Path]) -> bool:
    """Return whether the runs are of a game of two players, which are compared by matches."""
    from edgewise.experiments.ablated_games import is_game

    return is_game(runs[0])


def _ablated_in_games(options: Namespace, request: EvaluationRequest) -> list[dict[str, Any]]:
    from edgewise.experiments.ablated_games import ablate_in_games
    from edgewise.experiments.ablations import save_ablations

    rows = []
    for folder in options.runs:
        found = ablate_in_games(folder, _names(options.ablate), request, opponents=_names(options.baselines))
        save_ablations(folder, found)
        rows += found
    return rows


def _of_measures(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    known = list(dict.fromkeys(row["measure"] for row in rows))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"--measures: got {', '.join(unknown)}, expected some of {', '.join(known)}")
    return [row for row in rows if row["measure"] in names]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_decoding(options: Namespace) -> None:
    """Raise `ConfigError` for a decoding that does not exist, before anything is loaded."""
    if options.decode is None:
        return
    how = Decoding.parse(options.decode, field="--decode")
    if options.stochastic:
        raise ConfigError(f"--stochastic has no effect with --decode {how}", hint="leave one of them out")


def _check_unused(names: Iterable[str], why: str, hint: str) -> None:
    """Raise `ConfigError` if there are options that would have no effect."""
    flags = [f"--{name.removeprefix('--').replace('_', '-')}" for name in names]
    if flags:
        raise ConfigError(f"{', '.join(flags)}: {why}", hint=hint)


def _evaluate(options: Namespace, request: EvaluationRequest) -> list[Evaluation]:
    """Evaluate every run at one combination of settings, and the baselines once."""
    from edgewise.experiments.evaluate import evaluate_run

    found: list[Evaluation] = []
    for index, folder in enumerate(options.runs):
        asked = request if index == 0 else replace(request, baselines=())
        with _shown_decoding(f"{folder.name}, {options.decode}", is_shown=bool(options.decode)) as progress:
            found += evaluate_run(folder, asked, progress=progress)
    return found


@contextmanager
def _shown_decoding(name: str, *, is_shown: bool) -> Iterator[Progress | None]:
    """Return what shows how many episodes are done; the display starts with its first call."""
    if not is_shown:
        yield None
        return
    from edgewise.training.logging.progress import make_progress

    started, display = False, make_progress(unit="episodes")

    def show(done: int, total: int, steps: int) -> None:
        nonlocal started
        if not started:
            display.start(0, total, name)
            started = True
        display.update(done, {"step": f"{steps:,}"})

    try:
        yield show
    finally:
        display.close()


def _over_seeds(evaluated: list[list[Evaluation]]) -> list[dict[str, Any]]:
    """Return the mean and the interquartile mean of every measure over runs with their intervals."""
    import numpy as np

    from edgewise.evaluation.statistics import interquartile_interval, mean_interval

    rows = []
    for runs in _by_settings(evaluated):
        for name in runs[0].measures():
            means = [float(np.nanmean(one.measures()[name])) for one in runs]
            middle, interval = interquartile_interval(means), mean_interval(means)
            rows.append(
                {
                    "settings": dict(runs[0].settings),
                    "measure": name,
                    "runs": len(runs),
                    "mean": interval.estimate,
                    **interval.ends(),
                    "iqm": middle.estimate,
                    **{f"iqm_{name}": end for name, end in middle.ends().items() if name != "n"},
                }
            )
    return rows


def _by_settings(evaluated: list[list[Evaluation]]) -> list[list[Evaluation]]:
    """Group the results of all runs by settings."""
    groups: dict[str, list[Evaluation]] = {}
    for index, evaluations in enumerate(evaluated):
        for evaluation in evaluations:
            if not evaluation.baseline:
                groups.setdefault(f"{index} {dict(evaluation.settings)}", []).append(evaluation)
    return list(groups.values())


def _span(row: dict[str, Any], name: str, prefix: str) -> str:
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    span = f"[{low:.4g}, {high:.4g}] (n={row['n']})" if low is not None else f"(n={row['n']}, no interval)"
    return f"{row[name]:.4g} {span}"
