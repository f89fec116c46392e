"""`edgewise envs`: list environments, show their settings, check their contract."""

from __future__ import annotations

import time
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.plugins import environment, environments
from edgewise.terminal.console import Console, table
from edgewise.terminal.fields import fields_help
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=["list", "show", "check"], help="what to do"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="environments; all if none is named")
    parser.add_machine()
    parser.examples("edgewise envs list", "edgewise envs show graphwalk", "edgewise envs check graphwalk")


def run(options: Namespace, console: Console) -> int:
    """List, show or check environments."""
    known = environments()
    names = options.names or list(known)
    # Those of installed packages are listed without importing them.
    found = {name: known.get(name) or environment(name) for name in names}
    if options.action == "list":
        console.show(
            [{"name": name, "summary": entry.summary} for name, entry in found.items()],
            table(["environment", "summary"], [[name, entry.summary] for name, entry in found.items()]),
        )
        return 0
    if options.action == "show":
        return _show(names, console)
    prepare(threads=options.threads)
    return _check(names, console, seed=options.seed or 0, device=options.device or "cpu")


def _show(names: list[str], console: Console) -> int:
    data, texts = [], []
    for name in names:
        entry = environment(name)
        config = entry.load("config")()
        baselines = entry.load_baselines().names()
        data.append(
            {"name": name, "summary": entry.summary, "config": config.to_plain(), "baselines": baselines}
        )
        fields = fields_help(config, within=("env",))
        texts.append(f"{name}: {entry.summary}\nbaselines: {', '.join(baselines)}\n{fields}")
    console.show(data if len(data) > 1 else data[0], "\n\n".join(texts))
    return 0


def _place(error: BaseException) -> str:
    """Return the last line of code outside of installed packages that an error passed through."""
    from edgewise.plugins.places import is_installed, real_path

    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_installed(real_path(frame.filename))]
    return f", in {own[-1].name} ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _check(names: list[str], console: Console, *, seed: int, device: str) -> int:
    from edgewise.envs.contract import check_graph_env
    from edgewise.envs.registry import make_env
    from edgewise.scale.devices import check_device

    check_device(device)
    results: list[dict[str, Any]] = []
    for name in names:
        start = time.process_time()
        fault = None
        try:
            check_graph_env(make_env(name, num_envs=4, seed=seed, device=device))
        except (AssertionError, ConfigError) as error:
            fault = str(error)
        except Exception as error:  # whatever the user's code raises is what is wrong with it
            fault = f"{type(error).__name__}: {error}{_place(error)}"
        results.append(
            {"name": name, "ok": fault is None, "fault": fault, "seconds": time.process_time() - start}
        )
    rows = [[result["name"], result["fault"] or "ok", round(result["seconds"], 2)] for result in results]
    console.show(results, table(["environment", "contract", "CPU seconds"], rows))
    return 0 if all(result["ok"] for result in results) else ConfigError.exit_code
