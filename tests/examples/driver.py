"""Trains, kills, resumes, evaluates and plays the examples, each step in a process of its own.

The processes are forked from one, which imports what ships with edgewise, and neither imports an example
nor computes anything.
"""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
from benchmarks.kill_resume import differences
from torchrl.envs.utils import step_mdp

import edgewise as ew
from edgewise.cli.main import main

EXAMPLES = {
    "tsp": ("examples/tsp/tsp.py", "--num-cities", [6, 12]),
    "outbreak": ("examples/outbreak/outbreak.py", "--num-people", [6, 12]),
    "cover": ("examples/team/cover.py", "--num-agents", [3, 5]),
}
"""File, setting of the size, and other sizes to evaluate."""

SMALL = {
    "--total-frames": 160,
    "--num-envs": 4,
    "--rollout-length": 8,
    "--hidden": 16,
    "--layers": 1,
    "--heads": 2,
    "--epochs": 2,
    "--minibatch-size": 16,
    "--evaluation.every": 64,
    "--evaluation.episodes": 4,
    "--checkpoint.every": 60,
    "--checkpoint.keep-last": 2,
    "--tensorboard": "false",
}
"""A run of five batches."""


def fork(function, log):
    """Start a function in a child whose output goes to a file; return the child's id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, 1)
        os.dup2(os.open(f"{log}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        code = function() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def ended(child):
    """Wait for a child, and return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(child, metrics, rows=3):
    """Kill a child once it has written some rows; return its exit code."""
    while not metrics.exists() or metrics.read_bytes().count(b"\n") <= rows:
        if os.waitpid(child, os.WNOHANG)[0]:
            return "ended before it was killed"
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return ended(child)


def play(run, file, size, number):
    """Load the policy of a run at another size, and play: every action must be legal."""
    torch.set_num_threads(1)
    setting = {size.removeprefix("--").replace("-", "_"): number}
    policy = ew.load_policy(run, plugins=[file], **setting)
    env = ew.make_env(type(policy.env), num_envs=3, seed=1, **setting)
    root = env.reset()
    for _ in range(4):
        action = policy.act(root)
        assert env.actions.is_legal(action, root, env.graph).all()
        root = step_mdp(env.step(root.set("action", action)))


def run(name, folder):
    """Return what happened to one example."""
    file, size, sizes = EXAMPLES[name]
    flags = [str(word) for pair in SMALL.items() for word in pair]
    whole, broken = folder / f"{name}-whole", folder / f"{name}-killed"

    def step(words, log):
        return fork(lambda: main([*map(str, words)]), folder / f"{name}-{log}.txt")

    result = {"train": ended(step(["train", file, *flags, "--out", whole], "train"))}
    child = step(["train", file, *flags, "--out", broken], "killed")
    result["killed"] = killed(child, broken / "metrics.csv")
    result["refused"] = ended(step(["resume", broken], "refused"))
    result["resume"] = ended(step(["resume", broken, "--plugin", file], "resume"))
    result["differences"] = differences(whole, broken)
    listed = ",".join(map(str, sizes))
    words = ["eval", whole, "--plugin", file, size, listed, "--baselines", "all", "--episodes", 3, "--json"]
    result["eval"] = ended(step(words, "eval"))
    result["play"] = ended(fork(lambda: play(whole, file, size, sizes[-1]), folder / f"{name}-play.txt"))
    return result


def drive(folder):
    """Write what happened to every example to the file `outcome.json` in a folder."""
    place = Path(folder)
    happened = {name: run(name, place) for name in EXAMPLES}
    (place / "outcome.json").write_text(json.dumps(happened))
