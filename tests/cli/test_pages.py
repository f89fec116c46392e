"""Every command that a page shows can be typed: its verb, options, recipe, environment and settings exist.

A command on a file of the reader's is parsed only. Every link leads to a file. Python, TOML, YAML and JSON
parse, and the names of ours in Python exist.
"""

import ast
import importlib
import json
import re
import shlex
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

import edgewise as ew
from edgewise.cli.verbs import GENERIC
from edgewise.config.errors import ConfigError
from edgewise.config.schema import find
from edgewise.config.settings import from_flags
from edgewise.experiments.defaults import defaults
from edgewise.experiments.recipes import recipe
from edgewise.plugins import Address, algorithms, environment, environments, load, recipes, systems
from edgewise.terminal.parser import Parser

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "src/edgewise/systems").glob("*/README.md")),
]
WITH_COMMANDS = [page for page in PAGES if page.name not in ("CHANGELOG.md", "from-0.2.md")]
"""The others name commands in part, and those of their time."""
OWN = {
    "reasoning kge": "edgewise.systems.reasoning.embeddings.config:KGEConfig",
    "reasoning mine": "edgewise.systems.reasoning.mining.config:MiningConfig",
}
"""Verbs with settings of their own, and where these are."""
VERBS = GENERIC | {f"{system.name} {verb.name}": verb for system in systems() for verb in system.verbs}
IN_TEXT = re.compile(r"`(?:[A-Z_]+=\S+ )?edgewise ([^`]+)`")
IN_BLOCK = re.compile(r"^(?:\$ )?edgewise (.+?)(?:\s+#.*)?$", re.MULTILINE)
PLACEHOLDER = re.compile(r"[A-Z]+")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def commands(page):
    """The arguments of every `edgewise` command on a page, placeholders filled with a number."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    shown = [*IN_TEXT.findall(prose), *(line for block in blocks for line in IN_BLOCK.findall(block))]
    for line in shown:
        words = takewhile(lambda word: word not in (">", "|"), shlex.split(line))
        tokens = [word.partition("|")[0] for word in words]
        yield ["1" if PLACEHOLDER.fullmatch(token) else token for token in tokens]


def faults(arguments):
    """What is wrong with a command."""
    name, *rest = arguments
    if name == "1":
        return []
    if rest and f"{name} {rest[0]}" in VERBS:
        name, *rest = f"{name} {rest[0]}", *rest[1:]
    if name not in (*VERBS, *(system.name for system in systems()), "--help"):
        # A verb of the reader's own comes with a plug-in.
        return [] if "--plugin" in rest else [f"no verb {name}"]
    if "--help" in arguments:
        return []
    parser = Parser(name, "a verb")
    VERBS[name].load().configure(parser)
    try:
        options = parser.parse(rest)
    except ConfigError as error:
        only_named = "required" in error.message and not any(token.startswith("-") for token in rest)
        return [] if only_named else [error.message]
    flags = [*options.settings, *((text.partition("=")[0], "1") for text in getattr(options, "set", []))]
    if name in ("train", "sweep"):
        return train_faults(options, flags)
    if name in OWN:
        return [flag for flag, _ in flags if isinstance(find(load(OWN[name]), flag.removeprefix("--")), str)]
    if options.plugin:
        return []
    named = [options.env] if name == "baseline" else list(environments())
    if any(is_file_or_address(env) for env in named):
        return []
    if unknown := set(named) - set(environments()):
        return [f"no environment {', '.join(unknown)}"]
    return [flag for flag, _ in flags if not any(has(env, flag) for env in named)]


def train_faults(options, flags):
    """What is wrong with a command that trains."""
    source, chosen = options.source, options.algorithm
    if chosen is not None and chosen not in algorithms() and not is_file_or_address(chosen):
        return [f"no algorithm {chosen}"]
    if source in recipes():
        found = list(from_flags(recipe(source).schema, flags).problems)
        return found if chosen is None else [*found, f"{source} has its algorithm already"]
    if source in environments():
        own = chosen is not None and is_file_or_address(chosen)
        return [] if own else list(from_flags(defaults(source, chosen or "ppo")[1], flags).problems)
    known = is_file_or_address(source) or options.plugin or not source.islower()
    return [] if known else [f"no recipe or environment {source}"]


def is_file_or_address(text):
    """Whether a word names code or a config of the reader's."""
    return Path(text).suffix in (".py", ".yaml", ".yml", ".json") or Address.parse(text) is not None


def has(env, flag):
    """Whether a flag is a setting of an environment."""
    name = flag.removeprefix("--").removeprefix("env.")
    return not isinstance(find(environment(env).load("config"), name), str)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_exist(page):
    wrong = {" ".join(command): found for command in commands(page) if (found := faults(command))}
    assert not wrong


def test_there_is_a_card_for_every_system_and_a_command_on_it():
    cards = [page for page in PAGES if page.parent.parent.name == "systems"]
    assert {page.parent.name for page in cards} == {
        "graphwalk",
        "hex",
        "hive",
        "marine",
        "multihop",
        "queueing",
        "reasoning",
        "reentrant",
        "swarm",
    }
    assert any(list(commands(page)) for page in cards)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files(page):
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


def blocks(page, *languages):
    """The blocks of a page in some languages."""
    text = page.read_text(encoding="utf-8")
    pattern = rf"^```(?:{'|'.join(languages)})\n(.*?)^```"
    return re.findall(pattern, text, re.MULTILINE | re.DOTALL)


def python_faults(text):
    """Names of ours in a block of Python that do not exist."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ew":
            if node.attr not in ew.__all__:
                yield f"ew.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "edgewise":
            module = importlib.import_module(node.module)
            yield from (f"{node.module}.{name.name}" for name in node.names if not hasattr(module, name.name))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_a_page_parses_and_its_names_exist(page):
    assert not [fault for block in blocks(page, "python") for fault in python_faults(block)]
    for language, parse in (("toml", tomllib.loads), ("ya?ml", yaml.safe_load), ("json", json.loads)):
        for block in blocks(page, language):
            parse(block)


def test_python_that_does_not_exist_is_found():
    assert list(python_faults("import edgewise as ew\new.trane('x')")) == ["ew.trane"]
    assert list(python_faults("from edgewise.evaluation.evaluate import valuate"))
    assert not list(python_faults("from edgewise.evaluation.evaluate import evaluate\new.train('x')"))
    with pytest.raises(SyntaxError):
        list(python_faults("run = = 3"))


def test_a_command_that_does_not_exist_is_found():
    assert faults(["no-such-verb"])
    assert faults(["envs", "marine"])
    assert faults(["export", "1", "--to", "policy"])
    assert faults(["bench", "reasoning", "--data", "1"])
    assert faults(["train", "graphwalk-ppo", "--frames", "1"])
    assert faults(["train", "graphwalk-ppo", "--steps", "1"])
    assert faults(["train", "graphwalk-ppo", "--algorithm", "ppo"])
    assert faults(["train", "no-such-recipe"])
    assert faults(["sweep", "graphwalk-ppo", "--set", "learnin_rate=log:1e-4,1e-2"])
    assert not faults(["sweep", "graphwalk-ppo", "--set", "learning_rate=log:1e-4,1e-2", "--jobs", "2"])
    assert faults(["train", "graphwalk", "--algorithm", "no-such-algorithm"])
    assert faults(["train", "graphwalk", "--algorithm", "ppo", "--num-nodess", "8"])
    assert faults(["eval", "1", "--num-nodess", "8"])
    assert faults(["baseline", "no-such-environment"])
    assert faults(["baseline", "graphwalk", "--num-cities", "8"])


def test_a_command_on_a_file_of_the_readers_is_only_parsed():
    assert not faults(["eval"])
    assert not faults(["tour", "runs/tsp-1", "--plugin", "tour.py"])
    assert not faults(["train", "tsp.py", "--num-cities", "20"])
    assert not faults(["train", "my_package.tsp:TSPEnv", "--algorithm", "mine.py:Mine", "--speed", "3"])
    assert not faults(["train", "graphwalk", "--algorithm", "ppo", "--num-nodes", "8"])
    assert not faults(["train", "tsp-small", "--plugin", "recipe.py"])
    assert not faults(["eval", "runs/tsp-1", "--num-cities", "50", "--plugin", "tsp.py"])
    assert not faults(["baseline", "tsp.py", "--num-cities", "50"])
    assert faults(["train", "tsp.py", "--algorithm", "no-such-algorithm"])
    assert faults(["export", "runs/tsp-1", "--plugin"])
