"""Calling edgewise leaves the program that calls it as it was."""

import subprocess
import sys
import textwrap

import pytest

from edgewise.experiments.guest import as_guest

HOST = """
import random, signal, sys, threading, warnings
import numpy as np
import torch
import edgewise as ew

def mine(number, frame): ...

torch.set_num_threads(2)
torch.manual_seed(11); np.random.seed(12); random.seed(13)
signal.signal(signal.SIGTERM, mine)
signal.signal(signal.SIGINT, mine)
warnings.filterwarnings("error", message="of the host")

def state():
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.get_rng_state().tolist(),
        "numpy": [str(part) for part in np.random.get_state()],
        "python": random.getstate(),
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "filters": list(warnings.filters),
        "show": warnings.showwarning,
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "children": threading.active_count(),
    }

def compare(what):
    changed = [name for name, value in state().items() if value != before[name]]
    print(what, *(changed or ["nothing"]))

before = state()
small = dict(total_frames=32, num_envs=2, rollout_length=16, threads=1)
small["evaluation"] = {"episodes": 2, "every": None}
run = ew.train("graphwalk-ppo", folder=sys.argv[1], progress=False, **small)
compare("train")
ew.evaluate(run, episodes=2)
compare("evaluate")
ew.load_policy(run)
compare("load_policy")
run.evaluate(episodes=2)
compare("run.evaluate")
try:
    ew.train("graphwalk-ppo", num_envs=-1)
except ew.ConfigError:
    compare("refused")
"""


def test_the_host_is_left_as_it_was(tmp_path):
    program = [sys.executable, "-c", textwrap.dedent(HOST), str(tmp_path / "run")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    expected = ["train", "evaluate", "load_policy", "run.evaluate", "refused"]
    assert done.stdout.splitlines()[-5:] == [f"{name} nothing" for name in expected]


def test_what_is_changed_within_is_restored_after_an_error():
    import random

    import torch

    threads, before = torch.get_num_threads(), random.getstate()

    @as_guest()
    def changes():
        torch.set_num_threads(threads + 1)
        random.seed(5)
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        changes()
    assert (torch.get_num_threads(), random.getstate()) == (threads, before)
