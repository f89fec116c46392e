"""A hundred malformed configs: every planted fault is listed, nothing else is, and the exit code is 2."""

import json
import random
import subprocess
import sys
from types import NoneType
from typing import Literal, get_origin

import pytest
import yaml

from edgewise.config.layers import dotted
from edgewise.config.schema import allows_list, alternatives, leaves
from edgewise.experiments.recipes import recipe

RECIPE = recipe("graphwalk-ppo")
NEVER = {"recipe", "env_name", "algorithm_name"}
"""Fields that choose the schema itself."""
PROGRAM = """
import sys
from edgewise.cli.main import main
code = main(sys.argv[1:])
print("torch" in sys.modules)
sys.exit(code)
"""


def wrong_values(leaf):
    """Values that no field of this kind takes, whatever its bounds."""
    kinds = alternatives(leaf.annotation)
    holders = {get_origin(kind) for kind in kinds}
    wrong = [] if dict in holders else [{"unheard": 1}]
    if not holders & {list, tuple}:
        wrong.append([None])
    if str not in kinds:
        wrong.append("plainly wrong")
    if bool not in kinds:
        wrong.append(True)
    if NoneType not in kinds:
        wrong.append(None)
    if int in kinds:
        wrong += [1.5, float("nan")]
    if kinds == (int,):
        wrong.append(-(10**30))
    if float in kinds:
        wrong += [float("nan"), float("inf")]
    if kinds == (str,):
        wrong += [7, ""]
    if any(get_origin(kind) is Literal for kind in kinds):
        wrong.append("nonsense")
    return wrong


def sections(values, path=()):
    """Every mapping of a config that is made of fields."""
    yield path
    for name, value in values.items():
        if isinstance(value, dict) and name not in ("schedules", "settings"):
            yield from sections(value, (*path, name))


def put(values, path, value):
    for part in path[:-1]:
        values = values.setdefault(part, {})
    values[path[-1]] = value


def plant(seed):
    """A config with some faults, those of them that are flags, and the dotted paths of all."""
    rng = random.Random(seed)
    fields = [leaf for leaf in leaves(RECIPE.schema, RECIPE.config) if leaf.path[0] not in NEVER]
    chosen = rng.sample(fields, rng.randint(1, 6))
    values, flags, paths = {"recipe": RECIPE.name}, [], set()
    for leaf in chosen:
        wrong = rng.choice(wrong_values(leaf))
        paths.add(dotted(leaf.path))
        # A flag of a list of text takes any text, as its one entry.
        may_be_flag = isinstance(wrong, str) and wrong and not allows_list(leaf.annotation)
        if rng.random() < 0.25 and may_be_flag:
            flags += [leaf.flag, wrong]
        else:
            put(values, leaf.path, wrong)
    for path in rng.sample(list(sections(RECIPE.config.to_plain())), rng.randint(0, 2)):
        name = f"unheard_of_{rng.randint(0, 99)}"
        put(values, (*path, name), rng.choice([1, "x", None, [1]]))
        paths.add(dotted((*path, name)))
    return values, flags, paths


def write(folder, values, seed):
    file = folder / f"mine.{'json' if seed % 3 == 0 else 'yaml'}"
    file.write_text(json.dumps(values, indent=1) if file.suffix == ".json" else yaml.safe_dump(values))
    return file


@pytest.mark.parametrize("seed", range(80))
def test_every_planted_fault_is_listed_and_no_other(seed, edgewise, tmp_path):
    values, flags, paths = plant(seed)
    outcome = edgewise("train", write(tmp_path, values, seed), *flags, "--json")
    assert outcome.code == 2
    problems = outcome.data["error"]["problems"]
    # A flag of a list gives one entry, and the fault is that entry's.
    assert {problem["path"].removesuffix(".0") for problem in problems} == paths
    for problem in problems:
        assert problem["origin"].startswith((str(tmp_path), "--")), problem
        assert problem["reason"]
        assert problem["reason"] in outcome.err
    assert not list(tmp_path.glob("runs*"))


def break_text(text, seed):
    """Text that is no YAML any more, and words that its error must have."""
    rng = random.Random(seed)
    lines = text.splitlines()
    at = rng.randrange(1, len(lines))
    faults = {
        "bracket": (f"broken: [1, {{2: 3\n{text}", "line"),
        "tab": ("\n".join([*lines[:at], "\tmore: 1", *lines[at:]]), "line"),
        "colon": ("\n".join([*lines[:at], "a: b: c", *lines[at:]]), "line"),
        "quote": (f'{text}name: "never closed\n', "line"),
        "twice": (f"{text}seed: 1\nseed: 2\n", "given twice"),
        "documents": (f"{text}---\nseed: 1\n", "line"),
        "alias": (f"{text}name: *nobody\n", "line"),
        "bytes": (f"{text}name: \udcff\n", "UTF-8"),
    }
    return faults[sorted(faults)[seed % len(faults)]]


@pytest.mark.parametrize("seed", range(20))
def test_text_that_cannot_be_read_is_named_with_its_line(seed, edgewise, tmp_path):
    text = "recipe: graphwalk-ppo\nthreads: 1\nenv:\n  max_steps: 7\nmodel:\n  pool: mean\n"
    broken, says = break_text(text, seed)
    file = tmp_path / "mine.yaml"
    file.write_bytes(broken.encode(errors="surrogateescape"))
    outcome = edgewise("train", file)
    assert outcome.code == 2
    assert str(file) in outcome.err
    assert says in outcome.err


@pytest.mark.parametrize("seed", [3, 14])
def test_a_process_ends_likewise_before_torch_is_imported(seed, tmp_path):
    values, flags, paths = plant(seed)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "train", write(tmp_path, values, seed), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout.strip() == "False"
    assert "Traceback" not in done.stderr
    assert all(path in done.stderr.replace("-", "_") for path in paths)
