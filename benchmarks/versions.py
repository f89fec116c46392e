"""CPU time of the same work in an earlier version and in this one, in turn.

    python -m benchmarks.versions COMMIT updates [--batch 1024] [--repeats 15] [AGENT ...]
    python -m benchmarks.versions COMMIT steps [--repeats 15]
    python -m benchmarks.versions COMMIT train RECIPE [--frames N] [--repeats 1]

The sources of COMMIT are taken from the repository into a temporary folder. Each version runs in a process of
its own, one thread; rounds alternate, and the minimum of each counts.

- `updates`: an update of off-policy agents with networks of the published sizes, sampling included, with the
  agents that `benchmarks.agents` of each version builds.
- `steps`: steps of the countries environment with 1,024 worlds, resets and random actions included.
- `train`: `edgewise train RECIPE` from its start to its end, evaluations, logs and checkpoints included.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
AGENTS = ("dqn", "ddpg", "sac", "rainbow", "ac-iqn", "iqn")

PREPARE = """
import sys, time, torch
torch.set_num_threads(1)
torch.manual_seed(0)
try:  # as the commands of the version do, if it can
    from edgewise.terminal.machine import keep_memory
    keep_memory()
except ImportError:
    pass
"""
SERVE = """
for line in sys.stdin:
    task = tasks[line.strip()]
    start = time.process_time()
    task()
    print(time.process_time() - start, file=sys.stderr, flush=True)
"""
UPDATES = (
    PREPARE
    + """
from benchmarks.agents import ready
batch, *names = sys.argv[1:]
tasks = {name: ready(name, batch=int(batch), stored=100_000)._update for name in names}
for task in tasks.values():
    task()
"""
    + SERVE
)
STEPS = (
    PREPARE
    + """
from edgewise.envs.registry import make_env
env = make_env("reasoning", num_envs=1024, seed=0, view="state", data="countries_s3", max_successors=20)
root = [env.reset()]
def steps():
    for _ in range(16):
        _, root[0] = env.step_and_maybe_reset(env.rand_action(root[0]))
steps(), steps()
tasks = {"16 steps of 1,024 worlds": steps}
"""
    + SERVE
)
TRAIN = "from edgewise.cli.main import entry; entry()"


class Worker:
    """A process that runs tasks with the sources in a folder, when asked to."""

    def __init__(self, folder: Path, program: str, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, task: str) -> float:
        """Return the CPU-seconds of a task."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        print(task, file=self.process.stdin, flush=True)
        for line in self.process.stderr:
            try:
                return float(line)
            except ValueError:  # a warning of a library
                continue
        raise SystemExit(f"the process of {task} has ended")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that uses the sources in `folder`."""
    return {**os.environ, "PYTHONPATH": f"{folder / 'src'}:{folder}", "OMP_NUM_THREADS": "1"}


def extract(commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder."""
    found = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        raise SystemExit(f"{commit}: {found.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")


def train(folder: Path, recipe: str, frames: int | None) -> float:
    """Return the CPU-seconds of a whole run."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", TRAIN, "train", recipe, "--out", f"{out}/run"]
        command += [] if frames is None else ["--total-frames", str(frames)]
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=out, env=environment(folder), check=True, capture_output=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (Path(out) / "run" / "checkpoints").is_dir()
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def compare(
    tasks: list[str], before: Callable[[str], float], after: Callable[[str], float], rounds: int
) -> None:
    """Run tasks of both versions in turn and print the minima."""
    print(f"{'':28s}{'before, s':>12s}{'now, s':>12s}{'ratio':>8s}", flush=True)
    for task in tasks:
        times = [(before(task), after(task)) for _ in range(rounds)]
        old, new = (min(each) for each in zip(*times, strict=True))
        print(f"{task:28s}{old:12.4f}{new:12.4f}{old / new:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="the earlier version: a commit, a tag or a branch")
    parser.add_argument("what", choices=["updates", "steps", "train"])
    parser.add_argument("names", nargs="*", help="agents, or the recipe to train")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument(
        "--frames", type=int, help="length of the training run; that of the recipe by default"
    )
    parser.add_argument("--repeats", type=int, help="rounds; 1 for training, otherwise 15")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder)
        extract(options.commit, earlier)
        if options.what == "train":
            tasks = options.names or ["swarm-mappo"]
            runs = [lambda task, tree=tree: train(tree, task, options.frames) for tree in (earlier, ROOT)]
            compare(tasks, *runs, rounds=options.repeats or 1)
            return
        tasks = ["16 steps of 1,024 worlds"] if options.what == "steps" else options.names or list(AGENTS)
        program = STEPS if options.what == "steps" else UPDATES
        workers = [Worker(tree, program, [str(options.batch), *tasks]) for tree in (earlier, ROOT)]
        try:
            compare(tasks, *workers, rounds=options.repeats or 15)
        finally:
            for worker in workers:
                worker.close()


if __name__ == "__main__":
    main()
