"""Kill verbs that write at random moments: nothing is lost or half-written, and the same command continues.

    python -m tests.attack.kills [--kills 60] [--seed 0]

Each verb is first run in peace, to know how long that takes. Then it is started again and again, killed at a
random moment each time, and at last run to its end. Every JSON file must then be whole, and nothing staged be
left.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from edgewise.runs.zoo import run_path

PROGRAM = (sys.executable, "-m", "edgewise")
QUICK = ("--num-envs=4", "--rollout-length=8", "--total-frames=256", "--evaluation.every=128", "--episodes=4")
GRID = """name: small
seeds: 2
settings: {total_frames: 128, num_envs: 4, rollout_length: 8, episodes: 4}
algorithms:
  ppo: {}
environments:
  graphwalk: {range: [-40, -3]}
"""


def commands(place):
    """Return the verbs, each as the words of its command and the folder that it writes."""
    run, other = str(place / "run"), str(place / "other")
    tuned = ("--set", "algorithm.clip=log:0.1..0.3", "--trials=2")
    return {
        "sweep": (["sweep", "graphwalk-ppo", *tuned, *QUICK, "--out", str(place / "sweep")], "sweep"),
        "benchmark": (["benchmark", str(place / "grid.yaml"), "--out", str(place / "grid")], "grid"),
        "export": (["export", run, "--out", str(place / "export")], "export"),
        "pack": (["pack", run, "--out", str(place / "pack")], "pack"),
        "report": (["report", run], "run"),
        "arena": (["arena", other, "--games=8", "--no-exact"], "other"),
    }


def start(words, place):
    """Start a verb in a session of its own, so that its children can be killed too."""
    log = (place / "log.txt").open("ab")
    return subprocess.Popen([*PROGRAM, *words], stdout=log, stderr=log, start_new_session=True)


def leftovers(folder):
    """Return files that are staged and were left there."""
    return [str(path.relative_to(folder)) for path in folder.rglob(".*.stage")]


def kill_one(name, place, dice, *, kills):
    """Kill a verb several times and let it end; return how often it was killed in time, and what is wrong."""
    words, written = commands(place)[name]
    began = time.monotonic()
    if start(words, place).wait(timeout=600):
        return 0, [f"{name}: does not end in peace: {(place / 'log.txt').read_text()[-600:]}"]
    usual, killed = time.monotonic() - began, 0
    if written not in ("run", "other"):
        shutil.rmtree(place / written, ignore_errors=True)
    for _ in range(4 * kills):
        if killed == kills:
            break
        process = start(words, place)
        try:
            process.wait(timeout=usual * dice.uniform(0.2, 1.0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
        else:
            if written not in ("run", "other"):
                shutil.rmtree(place / written, ignore_errors=True)
        if process.returncode not in (0, -signal.SIGKILL, 2):
            text = (place / "log.txt").read_text()[-600:]
            return killed, [f"{name}: ended with {process.returncode} after a kill: {text}"]
    last = start(words, place)
    code, text = last.wait(timeout=600), (place / "log.txt").read_text()
    wrong = [f"{name}: the same command ended with {code}: {text[-600:]}"] if code not in (0, 2) else []
    wrong += [f"{name}: Traceback: {text[-600:]}"] if "Traceback" in text else []
    wrong += [f"{name}: {left} was left" for left in leftovers(place / written)]
    wrong += [f"{name}: nothing was written"] if not (place / written).exists() else []
    for path in (place / written).rglob("*.json") if (place / written).is_dir() else ():
        json.loads(path.read_text())
    return killed, wrong


def main():
    """Kill all verbs, and return 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="of all verbs together (60)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    parser.add_argument("--only", metavar="VERB", help="one of the verbs")
    options = parser.parse_args()
    bad = []
    names = [options.only] if options.only else list(commands(Path()))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            place, dice = Path(folder), random.Random(f"{name}-{options.seed}")
            subprocess.run(
                [*PROGRAM, "train", "graphwalk-ppo", *QUICK, "--out", str(place / "run")], check=True
            )
            shutil.copytree(run_path("zoo:hex-quick"), place / "other")
            (place / "grid.yaml").write_text(GRID)
            killed, wrong = kill_one(name, place, dice, kills=max(1, options.kills // len(names)))
            print(
                f"{name}: killed {killed} times: {wrong or 'nothing lost, the same command goes on'}",
                flush=True,
            )
            bad += wrong
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
