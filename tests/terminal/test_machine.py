"""Preparing a process for tensor operations."""

import os
import subprocess
import sys

import pytest

from edgewise.terminal.machine import keep_memory

PROGRAM = """
import ctypes, resource, sys
from edgewise.terminal.machine import keep_memory
if sys.argv[1] == "keep":
    assert keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def step():
    for _ in range(20):
        block = ctypes.c_void_p(libc.malloc(16 * 2**20))
        libc.memset(block, 1, 16 * 2**20)
        libc.free(block)
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def page_faults(mode):
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    # Fixed in the control, since glibc raises its threshold when a large block is freed.
    environment |= {} if mode == "keep" else {"MALLOC_MMAP_THRESHOLD_": "131072"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], env=environment, check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator of glibc is Linux's")
def test_freed_memory_is_used_again(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    assert keep_memory()
    assert page_faults("default") > 10_000
    assert page_faults("keep") < 1_000


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_in_the_environment_take_precedence(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    assert not keep_memory()
