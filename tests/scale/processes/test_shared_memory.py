"""Reductions through shared memory: plain sums, chunks, any order of arrival, and lost processes."""

import os
import random
import subprocess
import sys
import threading
import time
from functools import reduce

import pytest
import torch

from edgewise.config.errors import ProcessLost
from edgewise.scale.processes import barrier, shared_memory
from edgewise.scale.processes.barrier import Barrier, Descriptors, shared_by
from edgewise.scale.processes.shared_memory import SharedMemory

OPERATIONS = {"sum": torch.add, "max": torch.maximum, "min": torch.minimum}


@pytest.fixture
def members():
    """The barriers of so many members of a group, all of them in this process."""
    made = []

    def make(size, *, timeout=20.0):
        with shared_by(size) as shared:
            copies = [Descriptors(os.dup(own.memory), tuple(map(os.dup, own.sockets))) for own in shared]
        made.extend(Barrier(own, rank=rank, size=size, timeout=timeout) for rank, own in enumerate(copies))
        return made

    yield make
    for each in made:
        each.close()


def together(calls):
    """Run functions in threads of their own; returns their results, or the errors that they raised."""
    results = [None] * len(calls)

    def run(number):
        try:
            results[number] = calls[number]()
        except ProcessLost as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_reduction_is_that_of_all_values_in_the_order_of_ranks(members, size, name):
    operation, generator = OPERATIONS[name], torch.Generator().manual_seed(size)
    groups = [SharedMemory(each) for each in members(size)]
    shapes = [(), (3,), (0,), (2, 5), (1000,)]
    rounds = [
        [torch.randn(shape, generator=generator).to(dtype) for _ in range(size)]
        for shape in shapes
        for dtype in (torch.float32, torch.float64, torch.int64)
    ]
    expected = [reduce(operation, values) for values in rounds]

    def work(rank):
        pause = random.Random(rank)
        for values in rounds:
            time.sleep(pause.random() * 2e-3)  # members arrive in any order, and some while others still read
            groups[rank].reduce(values[rank], operation)

    together([lambda rank=rank: work(rank) for rank in range(size)])
    for values, wanted in zip(rounds, expected, strict=True):
        assert all(torch.equal(each, wanted) for each in values)


def test_tensors_larger_than_the_memory_go_in_chunks(members, monkeypatch):
    monkeypatch.setattr(barrier, "CAPACITY", 64)
    monkeypatch.setattr(shared_memory, "CAPACITY", 64)
    groups = [SharedMemory(each) for each in members(2)]
    values = [torch.arange(101.0) * (rank + 1) for rank in range(2)]
    together([lambda rank=rank: groups[rank].reduce(values[rank], torch.add) for rank in range(2)])
    assert all(torch.equal(each, torch.arange(101.0) * 3) for each in values)


def test_nobody_passes_before_the_last_has_come(members):
    made, passed = members(3), []

    def late(rank):
        if rank == 2:
            time.sleep(0.2)
            passed.append("last")
        made[rank].wait()
        passed.append(rank)

    together([lambda rank=rank: late(rank) for rank in range(3)])
    assert passed[0] == "last"
    assert sorted(passed[1:]) == [0, 1, 2]


@pytest.mark.parametrize("gone", [0, 1])
def test_a_process_that_has_ended_is_noticed_at_once(members, gone):
    made = members(2, timeout=20.0)
    made[gone].close()
    began = time.monotonic()
    (error,) = together([made[1 - gone].wait])
    assert isinstance(error, ProcessLost)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("read", [False, True])
def test_a_process_that_ends_while_others_wait_for_it_is_noticed(members, read):
    made = members(2)

    def end():
        time.sleep(0.1)
        if read:  # it has seen the other, and ends before it answers
            made[0]._receive(made[0]._sockets[0])
        made[0].close()

    error, _ = together([made[1].wait, end])
    assert isinstance(error, ProcessLost)


def test_a_process_that_does_not_come_in_time_is_lost(members):
    made = members(2, timeout=0.05)
    (error,) = together([made[0].wait])
    assert isinstance(error, ProcessLost)


def test_a_waiting_process_sleeps(members):
    made = members(2)
    usage = time.process_time()
    together([made[0].wait, lambda: (time.sleep(0.5), made[1].wait())])
    assert time.process_time() - usage < 0.2


def test_a_process_finds_what_it_inherits_and_leaves_nothing_behind(tmp_path):
    program = """
import torch
from edgewise.scale.processes.barrier import Barrier, descriptors_of_this_process
from edgewise.scale.processes.shared_memory import SharedMemory
import sys
rank = int(sys.argv[1])
memory = SharedMemory(Barrier(descriptors_of_this_process(), rank=rank, size=2, timeout=60))
values = torch.tensor([1.0 + rank])
memory.reduce(values, torch.add)
print(float(values))
"""
    before = sorted(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else []
    with shared_by(2) as shared:
        started = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(rank)],
                env={**os.environ, **own.environment},
                pass_fds=own.all,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank, own in enumerate(shared)
        ]
        during = sorted(os.listdir("/dev/shm")) if before or os.path.isdir("/dev/shm") else []
    assert [each.communicate(timeout=60)[0] for each in started] == ["3.0\n", "3.0\n"]
    assert [name for name in during if name not in before and name.startswith("tmp")] == []


def test_a_process_that_was_started_alone_inherits_nothing(monkeypatch):
    monkeypatch.delenv(barrier.DESCRIPTORS, raising=False)
    assert barrier.descriptors_of_this_process() is None
