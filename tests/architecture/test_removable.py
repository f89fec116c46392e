"""A system can be removed: without its folder and tests, the program, the other tests and training work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import edgewise
from edgewise.systems import SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
NAMES = [module.rpartition(".")[2] for module in SYSTEMS]
WHOLE = "hex"
"""The system without which other tests are collected and a policy is trained, at every run of the tests."""
SMALL = ["--total-frames=64", "--num-envs=4", "--rollout-length=8", "--episodes=2", "--hidden=8"]


def without(name, folder):
    """Make a copy of source and tests, of links, without one system and what tests it."""
    _link(Path(edgewise.__file__).parent, folder / "src" / "edgewise", besides=f"systems/{name}")
    _link(ROOT / "tests", folder / "tests", besides=f"systems/{name}")
    for file in (folder / "tests").rglob("*"):
        if file.is_file() and name in file.stem.split("_"):
            file.unlink()
    for entry in ("pyproject.toml", "benchmarks", "examples", "docs", "README.md"):
        (folder / entry).symlink_to(ROOT / entry)
    return folder


def _link(source, target, *, besides):
    """Make a folder with links to the entries of another one, except one; folders of tests are made too."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == "__pycache__" or str(entry).endswith(besides):
            continue
        if entry.is_dir() and (entry.name == "systems" or ROOT / "tests" in entry.parents):
            _link(entry, target / entry.name, besides=besides)
        else:
            (target / entry.name).symlink_to(entry)


def run(folder, *words):
    """Run a Python module in the copy; return what it prints."""
    path = os.pathsep.join((str(folder / "src"), str(folder)))
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_program_works_without_a_system(name, tmp_path):
    folder = without(name, tmp_path / "copy")
    assert "edgewise train" in run(folder, "edgewise.cli", "--help")
    listed = run(folder, "edgewise.cli", "recipes")
    assert f"{name}-" not in listed
    assert all(f"{other}-" in listed for other in NAMES if other != name)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == WHOLE else pytest.mark.thorough) for name in NAMES]
)
def test_other_tests_are_collected_and_a_policy_is_trained(name, tmp_path):
    folder = without(name, tmp_path / "copy")
    collected = run(folder, "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    assert "tests/graphs/" in collected
    assert f"systems/{name}/" not in collected
    recipe = "multihop-clone" if name == "graphwalk" else "graphwalk-ppo"
    run(folder, "edgewise.cli", "train", recipe, *SMALL, "--out", "run")
    assert (folder / "run" / "report.html").exists()
