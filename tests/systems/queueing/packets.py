"""Waiting times of single packets: follow every packet of an environment, first in, first out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor


@dataclass(frozen=True)
class Sojourns:
    """Waiting times of packets, each `[B, N]` float64.

    Attributes:
        slots: number of slots followed.
        departed: packets that left.
        sojourn: sum of their waiting times in slots; a packet that is served in the slot of its arrival has
            waited zero slots.
        waiting: packets that are still in a queue.
        age: sum of the slots that those have waited so far.
        backlog_sum: packets in the queue at the end of each slot, summed over slots.
    """

    slots: int
    departed: Tensor
    sojourn: Tensor
    waiting: Tensor
    age: Tensor
    backlog_sum: Tensor

    @property
    def mean_delay(self) -> Tensor:
        """Mean waiting time in slots at each node, over the departed packets of all worlds, `[N]`."""
        return self.sojourn.sum(0) / self.departed.sum(0)


class PacketLog:
    """Arrival slots of all packets in all queues, derived from the environment's states.

    Args:
        state: state of the worlds; their queues must be empty.
        room: maximum length of a queue.
    """

    def __init__(self, state: TensorDictBase, *, room: int = 1024) -> None:
        queues = state["queues"]
        if bool((queues > 0).any()):
            raise ValueError("packets can only be followed from empty queues: set initial_queue to 0")
        self.stamps = torch.zeros(*queues.shape, room, dtype=torch.int64, device=queues.device)
        self.head = torch.zeros(queues.shape, dtype=torch.int64, device=queues.device)
        self.tail = self.head.clone()
        self.sojourn = torch.zeros(queues.shape, dtype=torch.float64, device=queues.device)
        self.backlog_sum = self.sojourn.clone()
        self.slot = 0

    def record(self, before: TensorDictBase, after: TensorDictBase) -> None:
        """Record one slot: add the arrivals, then remove the departures, oldest first.

        Arrivals are added first under either slot order: with the textbook order the departing packets are
        older anyway.

        Args:
            before: state at the start of the slot.
            after: state at its end.
        """
        arrivals = (after["arrived"] - before["arrived"]).long()
        departures = (before["queues"] - after["queues"]).long() + arrivals
        self._add(arrivals)
        self._remove(departures)
        self.backlog_sum += after["queues"]
        self.slot += 1

    def _add(self, arrivals: Tensor) -> None:
        room = self.stamps.shape[-1]
        if int((self.tail + arrivals - self.head).max()) > room:
            raise ValueError(f"a queue holds more than {room} packets: give the log more room")
        for turn in range(int(arrivals.max())):
            place = ((self.tail + turn) % room).unsqueeze(-1)
            kept = torch.where((turn < arrivals).unsqueeze(-1), self.slot, self.stamps.gather(-1, place))
            self.stamps.scatter_(-1, place, kept)
        self.tail += arrivals

    def _remove(self, departures: Tensor) -> None:
        for turn in range(int(departures.max())):
            stamp = self._stamp(self.head + turn)
            self.sojourn += torch.where(turn < departures, self.slot - stamp, 0)
        self.head += departures

    def _stamp(self, number: Tensor) -> Tensor:
        """Return the arrival slot of the packet with a given number in its queue, `[B, N]` int64."""
        return self.stamps.gather(-1, (number % self.stamps.shape[-1]).unsqueeze(-1)).squeeze(-1)

    def report(self) -> Sojourns:
        """Return the waiting times so far."""
        waiting = self.tail - self.head
        age = torch.zeros_like(self.sojourn)
        for turn in range(int(waiting.max())):
            age += torch.where(turn < waiting, self.slot - self._stamp(self.head + turn), 0)
        return Sojourns(
            slots=self.slot,
            departed=self.head.double(),
            sojourn=self.sojourn.clone(),
            waiting=waiting.double(),
            age=age,
            backlog_sum=self.backlog_sum.clone(),
        )
