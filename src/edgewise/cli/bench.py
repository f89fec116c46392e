"""`edgewise bench`: run the benchmark programs of the source tree; they print tables or write JSON."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import edgewise
from edgewise.config import files
from edgewise.config.errors import ConfigError
from edgewise.config.wording import did_you_mean
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser, whole_number

STDERR = 2
GROUPS = {"core": ("bridge", "encoders", "gae")}
"""Names for several programs."""
SHARED = ("__init__", "program", "benchmarl_peer", "rl4co_peer", "bare_tsp")
"""Files that are not programs of their own; `program` has the command line that most programs share."""


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="programs, or `core`; without names, list them"
    )
    parser.add_argument(
        "--quick", action="store_true", help="use fewer sizes and repeats, if the program supports it"
    )
    parser.add_argument("--train", action="store_true", help="also time training, if the program supports it")
    parser.add_argument(
        "--seed", type=whole_number(0), metavar="N", help="random seed, if the program supports it"
    )
    parser.add_threads()
    parser.examples("edgewise bench", "edgewise bench core", "edgewise bench bridge --quick --json")


def run(options: Namespace, console: Console) -> int:
    """List the programs, or run the named ones."""
    folder = _folder()
    known = {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem not in SHARED}
    if not options.names:
        rows = [[name, _purpose(path)] for name, path in known.items()]
        rows += [[name, f"{', '.join(members)}, one after another"] for name, members in GROUPS.items()]
        console.show(
            [{"name": name, "purpose": purpose} for name, purpose in rows], table(["name", "what"], rows)
        )
        return 0
    names = [name for given in options.names for name in GROUPS.get(given, (given,))]
    unknown = [name for name in names if name not in known]
    if unknown:
        choices = [*known, *GROUPS]
        raise ConfigError(
            f"no benchmark is called {', '.join(unknown)}", hint=did_you_mean(unknown[0], choices)
        )
    results = {name: _run_one(known[name], options, console) for name in names}
    if console.as_json:
        console.show(results, "")
    return 0


def _folder() -> Path:
    """Return the folder of benchmarks; only a source tree has one."""
    folder = Path(edgewise.__file__).parents[2] / "benchmarks"
    if not folder.is_dir():
        raise ConfigError(
            "the benchmarks are part of the source tree, and this is an installed package without them",
            hint="clone the repository and run `make bench` there",
        )
    return folder


def _purpose(program: Path) -> str:
    docstring = ast.get_docstring(ast.parse(files.read_text(program))) or ""
    return docstring.partition("\n")[0]


def _run_one(program: Path, options: Namespace, console: Console) -> Any:
    """Run one program; its tables go to stdout, or to stderr if stdout is for JSON."""
    text = files.read_text(program)
    if "from benchmarks.program import" in text:
        text += files.read_text(program.with_name("program.py"))
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / f"{program.stem}.json"
        command = [sys.executable, "-m", f"{program.parent.name}.{program.stem}"]
        command += ["--json", str(target)] if '"--json", type=Path' in text else []
        command += ["--quick"] if options.quick and '"--quick"' in text else []
        command += ["--train"] if options.train and '"--train"' in text else []
        command += ["--seed", str(options.seed)] if options.seed is not None and '"--seed"' in text else []
        threads = str(options.threads)
        done = subprocess.run(
            command,
            cwd=program.parents[1],
            env={**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
            stdout=STDERR if console.as_json else None,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigError(f"benchmark {program.stem} ended with exit code {done.returncode}")
        return files.read_json(target) if target.exists() else None
