"""`edgewise report`: write the report of a run, one that compares several runs, or a list of runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.config.errors import ConfigError
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        type=run_path,
        nargs="+",
        help="run folders or zoo:NAME, where those of one recipe are joined over seeds; or a folder of runs",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="output file (report.html in the first folder; index.html for a list)",
    )
    parser.add_argument(
        "--pdf", type=Path, metavar="FILE", help="write curves, intervals and profiles for papers instead"
    )
    parser.add_argument(
        "--latex", type=Path, metavar="FILE", help="write a table of means and intervals for papers instead"
    )
    parser.add_argument(
        "--pays",
        action="store_true",
        help="play each run and write where learning pays: one row per run beside the strongest rule, itself "
        "without edges, itself untrained and the optimum (where-learning-pays.html, or FILE.md for Markdown)",
    )
    parser.add_argument(
        "--episodes",
        type=whole_number(2),
        metavar="N",
        help="with --pays: number of instances, or of games (as in the run)",
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], help="with --pays: checkpoint to load (best)"
    )
    parser.add_argument(
        "--seed", type=whole_number(0), metavar="N", help="with --pays: seed of the instances (as in the run)"
    )
    parser.add_threads()
    parser.examples(
        "edgewise report runs/graphwalk-ppo-1",
        "edgewise report runs/graphwalk-ppo-* --out seeds.html",
        "edgewise report runs/graphwalk-ppo-* --pdf curves.pdf --latex table.tex",
        "edgewise report runs/",
        "edgewise report runs/graphwalk-ppo-1 zoo:graphwalk-ppo --pays --episodes 1000",
    )


def run(options: Namespace, console: Console) -> int:
    """Write the report and show its path."""
    if options.pays:
        return _pays(options, console)
    unused = [name for name in ("episodes", "checkpoint", "seed") if vars(options)[name] is not None]
    if unused:
        flags = ", ".join(f"--{name}" for name in unused)
        raise ConfigError(f"{flags}: has no effect without --pays", hint="omit it, or add --pays")
    if options.pdf is not None or options.latex is not None:
        return _paper(options, console)
    from edgewise.report.page import write_report
    from edgewise.report.run_list import has_runs, write_run_list

    first, *others = options.runs
    if not others and has_runs(first):
        written = write_run_list(first, target=options.out)
    else:
        written = write_report(first, *others, target=options.out)
    console.show({"report": str(written)}, f"report: {written}")
    return 0


def _paper(options: Namespace, console: Console) -> int:
    """Write figures and a table for papers."""
    from edgewise.report.paper import write_latex, write_pdf

    if options.out is not None:
        raise ConfigError("--out: has no effect with --pdf or --latex", hint="these name their files")
    written = {}
    if options.pdf is not None:
        written["pdf"] = str(write_pdf(options.runs, options.pdf))
    if options.latex is not None:
        written["latex"] = str(write_latex(options.runs, options.latex))
    console.show(written, "\n".join(f"{kind}: {path}" for kind, path in written.items()))
    return 0


def _pays(options: Namespace, console: Console) -> int:
    """Compare every run with rules, and write the page."""
    prepare(threads=options.threads)
    from edgewise.evaluation.request import EvaluationRequest
    from edgewise.experiments.learning_pays import compare_with_rules
    from edgewise.experiments.learning_pays_page import markdown, write_page

    request = EvaluationRequest(
        episodes=options.episodes, seed=options.seed, checkpoint=options.checkpoint or "best", device="cpu"
    )
    rows = []
    for run in options.runs:
        rows.append(compare_with_rules(run, request))
        console.note(f"{rows[-1].run}: {rows[-1].verdict}")
    written = write_page(rows, options.out or Path("where-learning-pays.html"))
    data = {"report": str(written), "rows": [row.to_plain() for row in rows]}
    console.show(data, f"{markdown(rows)}\nreport: {written}")
    return 0
