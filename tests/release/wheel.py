"""Try the wheel in new environments, each of one interpreter and one torch, and print a table of them.

    python -m tests.release.wheel python3.11 python3.12 python3.13
    python -m tests.release.wheel python3.11 --torch 2.13.0 2.14.1

Every environment is made by `venv` in a temporary folder. It installs torch and the wheel from the package
index, and runs the verbs that a new user tries first. For builds of torch without CUDA, set
`PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    *("--total-frames", "2000", "--num-envs", "16", "--rollout-length", "8"),
    *("--hidden", "16", "--evaluation.episodes", "8"),
]
VERBS: dict[str, list[str]] = {
    "train": ["train", "graphwalk-ppo", *SMALL, "--out", "walk"],
    "resume": ["resume", "walk", "--total-frames", "4000"],
    "eval": ["eval", "walk", "--episodes", "8", "--num-nodes", "9"],
    "report": ["report", "walk"],
    "render": ["render", "walk", "--to", "walk.gif"],
    "export": ["export", "walk", "--out", "policy"],
    "zoo": ["eval", "zoo:hex-quick", "--episodes", "4"],
}
EXTRAS = "render,export"
VERSIONS = """
import platform, importlib.metadata as m
names = ("torch", "torchrl", "tensordict", "torch_geometric")
print(platform.python_version(), *map(m.version, names))
"""


def main() -> int:
    """Try every pair of interpreter and torch; the exit code is 1 if a verb failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("interpreters", nargs="+", metavar="PYTHON", help="interpreters, by name or path")
    parser.add_argument(
        "--torch", nargs="+", default=[""], metavar="VERSION", help="versions of torch; the newest by default"
    )
    options = parser.parse_args()
    print("| Python | torch | torchrl | tensordict | torch_geometric |", *(f"{verb} |" for verb in VERBS))
    print("|---|---|---|---|---|" + "---|" * len(VERBS))
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for interpreter in options.interpreters:
            for torch in options.torch:
                versions, results = attempt(interpreter, torch, wheel)
                failed |= set(results) != {"ok"}
                print("|", " | ".join([*versions, *results]), "|", flush=True)
    return int(failed)


def build(folder: Path) -> Path:
    """Build the wheel of this tree and return its path."""
    program = f"import hatchling.build; hatchling.build.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def attempt(interpreter: str, torch: str, wheel: Path) -> tuple[list[str], list[str]]:
    """Install the wheel in a new environment; return its versions, and for each verb `ok` or its error."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
    with tempfile.TemporaryDirectory() as folder:
        venv, place = Path(folder, "venv"), Path(folder, "work")
        place.mkdir()
        subprocess.run([interpreter, "-m", "venv", str(venv)], check=True, env=clean)
        python = str(venv / "bin/python")
        wanted = f"torch=={torch}" if torch else "torch"
        for package in (wanted, f"{wheel}[{EXTRAS}]"):
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", package], check=True, env=clean, cwd=place
            )
        found = subprocess.run(
            [python, "-c", VERSIONS], check=True, env=clean, cwd=place, capture_output=True, text=True
        )
        return found.stdout.split(), list(run_verbs(venv / "bin/edgewise", place, clean))


def run_verbs(program: Path, place: Path, environment: dict[str, str]) -> Iterator[str]:
    """Yield `ok` or the last line of its error for each verb."""
    for words in VERBS.values():
        done = subprocess.run(
            [str(program), *words], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        yield (
            "ok"
            if done.returncode == 0
            else f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1][:90]}"
        )


if __name__ == "__main__":
    sys.exit(main())
