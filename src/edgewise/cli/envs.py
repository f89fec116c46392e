"""`edgewise envs`: list environments, show their settings, check their contract."""

from __future__ import annotations

import time
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.config.loading import resolve
from edgewise.config.settings import from_flags
from edgewise.plugins import environment, environments
from edgewise.terminal.console import Console, table
from edgewise.terminal.fields import fields_help
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, Settings


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=["list", "show", "check"], help="what to do"
    )
    parser.takes_settings = True
    parser.usage = "edgewise envs [list|show|check] [NAME ...] [--export] [--SETTING VALUE ...]"
    parser.add_argument("names", nargs="*", metavar="NAME", help="environments; all if none is named")
    parser.add_argument(
        "--export", action="store_true", help="check also that policies can be exported as ONNX files"
    )
    parser.add_machine()
    parser.examples(
        "edgewise envs list",
        "edgewise envs show graphwalk",
        "edgewise envs check graphwalk",
        "edgewise envs check tour.py --graphs my_graphs/ --split all --max-steps 30",
        "edgewise envs check tsp.py --export",
    )


def run(options: Namespace, console: Console) -> int:
    """List, show or check environments."""
    known = environments()
    names = options.names or list(known)
    # Those of installed packages are listed without importing them.
    found = {name: known.get(name) or environment(name) for name in names}
    if options.action != "check" and (options.settings or options.export):
        flag = "--export" if options.export else options.settings[0][0]
        raise ConfigError(f"{flag}: only `edgewise envs check` takes it")
    if options.action == "list":
        console.show(
            [{"name": name, "summary": entry.summary} for name, entry in found.items()],
            table(["environment", "summary"], [[name, entry.summary] for name, entry in found.items()]),
        )
        return 0
    if options.action == "show":
        return _show(names, console)
    prepare(threads=options.threads)
    return _check(names, options, console)


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


def _config(name: str, settings: Settings) -> Any:
    """Return the settings of an environment with those of the command line."""
    schema = environment(name).load("config")
    flags = [(f"--{flag.removeprefix('--').removeprefix('env.')}", text) for flag, text in settings]
    return resolve(schema, [from_flags(schema, flags)])


def _check_export(name: str, config: Any) -> None:
    from edgewise.experiments.export.check import WORLDS
    from edgewise.experiments.export.contract import check_export
    from edgewise.models.config import ModelConfig

    entry = environment(name)
    env = entry.load("env")(config, num_envs=WORLDS, seed=0, device="cpu")
    check_export(env, model=entry.load("model") or ModelConfig)


def _place(error: BaseException) -> str:
    """Return the last line of code outside of installed packages that an error passed through."""
    from edgewise.plugins.places import is_installed, real_path

    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_installed(real_path(frame.filename))]
    return f", in {own[-1].name} ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _check(names: list[str], options: Namespace, console: Console) -> int:
    from edgewise.envs.contract import check_graph_env
    from edgewise.scale.devices import check_device

    seed, device = options.seed or 0, options.device or "cpu"
    check_device(device)
    configs = {name: _config(name, options.settings) for name in names}
    results: list[dict[str, Any]] = []
    for name in names:
        start = time.process_time()
        fault = None
        try:
            make = environment(name).load("env")
            check_graph_env(make(configs[name], num_envs=4, seed=seed, device=device))
            if options.export:
                _check_export(name, configs[name])
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
