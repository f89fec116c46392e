"""`edgewise recipes`: list recipes, show their settings, check that they train."""

from __future__ import annotations

from argparse import Namespace

from edgewise import plugins
from edgewise.config.errors import ConfigError
from edgewise.experiments.recipes import recipe
from edgewise.terminal.console import Console, table
from edgewise.terminal.fields import fields_help
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=["list", "show", "check"], help="what to do"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="recipes; all if none is named")
    parser.examples(
        "edgewise recipes list", "edgewise recipes show graphwalk-ppo", "edgewise recipes check graphwalk-ppo"
    )


def run(options: Namespace, console: Console) -> int:
    """List, show or check recipes."""
    names = options.names or list(plugins.recipes())
    return {"list": _list, "show": _show, "check": _check}[options.action](names, console)


def _list(names: list[str], console: Console) -> int:
    found = [recipe(name) for name in names]
    rows = [[r.name, r.config.env_name, r.config.algorithm_name, r.summary] for r in found]
    data = [dict(zip(("name", "env", "algorithm", "summary"), row, strict=True)) for row in rows]
    console.show(data, table(["recipe", "env", "algorithm", "summary"], rows))
    return 0


def _show(names: list[str], console: Console) -> int:
    found = [recipe(name) for name in names]
    data = [{"name": r.name, "summary": r.summary, "config": r.config.to_plain()} for r in found]
    texts = [f"{r.name}: {r.summary}\n{fields_help(r.config)}" for r in found]
    console.show(data if len(data) > 1 else data[0], "\n\n".join(texts))
    return 0


def _check(names: list[str], console: Console) -> int:
    """Build each recipe at a small size and train it on one batch."""
    from edgewise.experiments.check import check_recipe

    results: dict[str, str | None] = {}
    for name in names:
        try:
            check_recipe(recipe(name).config)
            results[name] = None
        except ConfigError as error:
            results[name] = str(error)
    data = [{"name": name, "ok": fault is None, "fault": fault} for name, fault in results.items()]
    rows = [[name, "ok" if fault is None else fault] for name, fault in results.items()]
    console.show(data, table(["recipe", "check"], rows))
    return 0 if all(fault is None for fault in results.values()) else ConfigError.exit_code
