"""Every command that a page shows can be typed: its verb, options, recipe and settings exist."""

import re
import shlex
from pathlib import Path

import pytest

from edgewise.cli.verbs import verbs
from edgewise.config.errors import ConfigError
from edgewise.config.plugins import environment, environments, recipes
from edgewise.config.schema import find
from edgewise.config.settings import from_flags
from edgewise.experiments.recipes import recipe
from edgewise.terminal.parser import Parser

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src/edgewise/envs").glob("*/README.md")),
]
IN_TEXT = re.compile(r"`(?:[A-Z_]+=\S+ )?edgewise ([^`]+)`")
IN_BLOCK = re.compile(r"^(?:\$ )?edgewise (.+?)(?:\s+#.*)?$", re.MULTILINE)
PLACEHOLDER = re.compile(r"[A-Z]+")


def commands(page):
    """The arguments of every `edgewise` command on a page, placeholders filled with a number."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    shown = [*IN_TEXT.findall(prose), *(line for block in blocks for line in IN_BLOCK.findall(block))]
    for line in shown:
        tokens = [token.partition("|")[0] for token in shlex.split(line)]
        yield ["1" if PLACEHOLDER.fullmatch(token) else token for token in tokens]


def faults(arguments):
    """What is wrong with a command."""
    name, *rest = arguments
    if "--help" in arguments:
        return [] if name in (*verbs(), "--help") else [f"no verb {name}"]
    parser = Parser(name, "a verb")
    verbs()[name].load().configure(parser)
    try:
        options = parser.parse(rest)
    except ConfigError as error:
        only_named = "required" in error.message and not any(token.startswith("-") for token in rest)
        return [] if only_named else [error.message]
    flags = [*options.settings, *((text.partition("=")[0], "1") for text in getattr(options, "set", []))]
    if name == "train" and options.source in recipes():
        return list(from_flags(recipe(options.source).schema, flags).problems)
    if name == "train":
        known = Path(options.source).suffix or not options.source.islower()
        return [] if known else [f"no recipe {options.source}"]
    named = [options.env] if name == "baseline" else list(environments())
    return [flag for flag, _ in flags if name != "kge" and not any(has(env, flag) for env in named)]


def has(env, flag):
    """Whether a flag is a setting of an environment."""
    name = flag.removeprefix("--").removeprefix("env.")
    return not isinstance(find(environment(env).load("config"), name), str)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_exist(page):
    wrong = {" ".join(command): found for command in commands(page) if (found := faults(command))}
    assert not wrong


def test_a_command_that_does_not_exist_is_found():
    assert faults(["envs", "marine"])
    assert faults(["export", "1", "--out", "policy"])
    assert faults(["bench", "reasoning", "--data", "1"])
    assert faults(["train", "graphwalk-ppo", "--frames", "1"])
    assert faults(["train", "no-such-recipe"])
    assert faults(["eval", "1", "--num-nodess", "8"])
    assert not faults(["eval"])
