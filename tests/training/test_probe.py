"""The number of worlds that a probe chooses, on a machine whose clock and memory are made up."""

import pytest
import torch
from tensordict import TensorDict

from edgewise.scale.devices import free_memory
from edgewise.training.probe import FALLBACK, PEAK_SHARE, Candidate, choose_num_envs


class Machine:
    """Collecting takes `fixed + each * worlds` seconds; more than `limit` worlds do not fit."""

    def __init__(self, *, fixed=1.0, each=0.01, limit=10**9):
        self.fixed, self.each, self.limit, self.now = fixed, each, limit, 0.0
        self.asked = []

    def clock(self):
        return self.now

    def make(self, num_envs):
        def collect():
            if num_envs > self.limit:
                raise RuntimeError("not enough memory")
            torch.rand(3)
            self.now += self.fixed + self.each * num_envs
            return TensorDict({"x": torch.zeros(num_envs, 2, 25)}, batch_size=[num_envs, 2])

        self.asked.append(num_envs)
        return Candidate(collect, self.learn)

    def learn(self, batch):
        self.learned = batch.numel()


class Memory:
    """So many bytes are free; a device that measures its peak needs `each` bytes per frame to learn."""

    def __init__(self, free, *, machine=None, each=0):
        self._free, self._machine, self._each, self.has_peak = free, machine, each, machine is not None

    def free(self):
        return self._free

    def start(self):
        pass

    def peak(self):
        return self._each * self._machine.learned


def choose(machine, *, memory=10**12, **options):
    memory = Memory(memory) if isinstance(memory, int) else memory
    return choose_num_envs(
        machine.make, steps=10, clock=machine.clock, memory=memory, **{"seconds": 10**6, **options}
    )


def test_it_stops_where_more_worlds_are_hardly_faster():
    machine = Machine()
    chosen = choose(machine)
    speed = {count: count / (1.0 + 0.01 * count) for count in (*machine.asked, 2 * chosen)}
    assert speed[2 * chosen] < 1.1 * speed[chosen]
    assert speed[chosen] >= 1.1 * speed[chosen // 2]


def test_it_stops_where_a_batch_would_not_fit():
    bytes_per_frame = 100
    chosen = choose(Machine(each=0.0), memory=4 * 64 * 10 * bytes_per_frame)
    assert chosen == 64


def test_on_a_device_it_stops_where_learning_would_not_fit():
    machine = Machine(each=0.0)
    bytes_per_frame = 5000
    fits = int(256 * 10 * bytes_per_frame / PEAK_SHARE)
    assert choose(machine, memory=Memory(fits, machine=machine, each=bytes_per_frame)) == 256
    assert choose(machine, memory=Memory(fits - 100, machine=machine, each=bytes_per_frame)) == 128
    assert choose(machine, memory=fits) > 256


def test_it_stops_where_memory_runs_out_and_where_time_does():
    assert choose(Machine(each=0.0, limit=40)) == 32
    assert choose(Machine(each=0.0), seconds=5.0) == 32


def test_where_nothing_works_there_is_a_number():
    assert choose(Machine(limit=0)) == FALLBACK


def test_random_numbers_go_on_as_if_nothing_had_been():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    choose(Machine())
    assert torch.equal(torch.rand(4), expected)


def test_the_system_has_memory():
    assert free_memory() > 0


@pytest.mark.parametrize("candidates", [(5,), (5, 7)])
def test_only_candidates_are_chosen(candidates):
    assert choose(Machine(each=0.0), candidates=candidates) in candidates
