"""`edgewise queueing oracle`: the exact optimum of a small instance."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from edgewise.config.errors import ConfigError
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "edgewise queueing oracle --graph NAME --rate RATE[,RATE] [options]"
    parser.add_argument("--graph", required=True, metavar="NAME", help="conflict graph, such as line3")
    parser.add_argument(
        "--rate", required=True, metavar="RATES", help="arrivals per slot: one rate, or one per node"
    )
    parser.add_argument(
        "--policy", default="", metavar="NAMES", help="baselines to solve as well, comma-separated"
    )
    parser.add_argument(
        "--cap", type=whole_number(1), metavar="N", help="maximum queue length (as memory allows)"
    )
    parser.add_argument(
        "--arrivals-servable", action="store_true", help="a packet may leave in the slot of its arrival"
    )
    parser.add_threads()
    parser.examples(
        "edgewise queueing oracle --graph line3 --rate 0.4",
        "edgewise queueing oracle --graph line3 --rate 0.45 --cap 60 --policy maxweight --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Solve the instance and show the optimum and the baselines."""
    rates = _rates(options.rate)
    prepare(threads=options.threads)
    from edgewise.systems.queueing.oracle.figures import exact_figures

    found = exact_figures(
        options.graph,
        rates,
        policies=[name for name in options.policy.split(",") if name],
        cap=options.cap,
        arrivals_servable=options.arrivals_servable,
    )
    header = ["policy", "backlog", "truncation bias", "full", "cap", "sweeps"]
    rows = [
        [
            row.policy,
            f"{row.backlog:.4f}",
            f"{row.truncation_bias:.1e}",
            _shown(row.full),
            row.cap,
            row.sweeps or "",
        ]
        for row in found
    ]
    console.show([asdict(row) for row in found], table(header, rows))
    return 0


def _rates(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--rate: got {text!r}, expected comma-separated numbers, such as 0.4") from None


def _shown(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.1e}"
