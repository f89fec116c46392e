"""Start the two processes of `worker.py`, and read their results."""

import json
import os
import subprocess
import sys
from pathlib import Path

from edgewise.scale.processes.barrier import shared_by

ROOT = Path(__file__).parents[3]


def run_pair(folder, checks, *, seconds=600, memory=True):
    """Run checks in two processes; returns the results of both by name.

    They reduce through shared memory, as under `--processes`, or through Gloo, as under torchrun.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shared = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "RL_LOGGING_LEVEL": "WARNING",
        "WORLD_SIZE": "2",
        "GLOO_SOCKET_IFNAME": "lo",
        "EDGEWISE_RENDEZVOUS": f"file://{folder}/meeting",
    }
    command = [sys.executable, "-m", "tests.scale.processes.worker", str(folder), *checks]
    with shared_by(2) as shared_memory:
        started = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env={**shared, "RANK": str(rank), **(own.environment if memory else {})},
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=own.all if memory else (),
            )
            for rank, own in enumerate(shared_memory)
        ]
    try:
        errors = [process.communicate(timeout=seconds)[1] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert [process.returncode for process in started] == [0, 0], "\n".join(errors)
    results = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    for result in results:
        for name, found in result.items():
            assert "error" not in found, f"{name}: {found['error']}"
    return results
