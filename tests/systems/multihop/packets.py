"""Waiting times and hops of single packets: follow every packet through its network, first in, first out."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor

Place = tuple[int, int, int]
"""World, node and class of a queue."""


@dataclass(frozen=True)
class Journeys:
    """Waiting times and hops of the packets of each class, each `[B, K]` float64.

    A packet waits in a slot if it arrived in an earlier slot and is not delivered at the end of this one.
    Waiting times therefore add up to the backlog that the reward charges.

    Attributes:
        slots: number of slots followed.
        entered: packets that arrived.
        delivered: packets that reached their destination.
        sojourn: sum of their waiting times in slots.
        hops: sum of the links that they took.
        waiting: packets that are not delivered yet.
        age: sum of the slots that those have waited so far.
        backlog_sum: packets at the end of each slot before new arrivals, summed over slots.
    """

    slots: int
    entered: Tensor
    delivered: Tensor
    sojourn: Tensor
    hops: Tensor
    waiting: Tensor
    age: Tensor
    backlog_sum: Tensor

    @property
    def mean_delay(self) -> Tensor:
        """Mean waiting time in slots of each class, over the delivered packets of all worlds, `[K]`."""
        return self.sojourn.sum(0) / self.delivered.sum(0)

    @property
    def mean_hops(self) -> Tensor:
        """Mean number of links of each class, over the delivered packets of all worlds, `[K]`."""
        return self.hops.sum(0) / self.delivered.sum(0)


class JourneyLog:
    """Every packet of a few worlds as an object, first in, first out in every queue.

    It is slow and independent of the environment: it moves its own packets by what the links carried and
    compares their numbers with the environment's queues after every slot.

    Args:
        state: state of the worlds; their queues must be empty.
    """

    def __init__(self, state: TensorDictBase) -> None:
        if bool((state["queues"] > 0).any()):
            raise ValueError("packets can only be followed from empty queues")
        self.shape = state["queues"].shape
        self.queues: dict[Place, deque[_Packet]] = defaultdict(deque)
        self.totals = torch.zeros(5, self.shape[0], self.shape[2], dtype=torch.float64)
        self.slot = 0

    def record(self, before: TensorDictBase, action: Tensor, after: TensorDictBase) -> None:
        """Record one slot: move packets, remove delivered ones, count, and add arrivals.

        Args:
            before: state at the start of the slot.
            action: `[B, M]`, the class that each link chose, 0 for none.
            after: state at its end.

        Raises:
            ValueError: the environment's queues do not match the packets.
        """
        entered, delivered, sojourn, hops, backlog = self.totals.unbind()
        for world, packet in self._deliver(self._hop(before, action, after), before):
            delivered[world, packet.kind] += 1
            sojourn[world, packet.kind] += self.slot - packet.entered - 1
            hops[world, packet.kind] += packet.hops
        backlog += self._counts().sum(1)
        arrivals = after["queues"].double() - self._counts()
        if bool((arrivals < 0).any()) or bool((arrivals != arrivals.round()).any()):
            raise ValueError(f"slot {self.slot}: the environment's queues do not match the packets")
        for world, node, kind in arrivals.nonzero().tolist():
            for _ in range(int(arrivals[world, node, kind])):
                self.queues[world, node, kind].append(_Packet(kind, entered=self.slot))
        entered += arrivals.sum(1)
        self.slot += 1

    def _hop(
        self, before: TensorDictBase, action: Tensor, after: TensorDictBase
    ) -> list[tuple[int, int, _Packet]]:
        """Remove carried packets from their queues; return world, next node and packet of each."""
        moved = []
        ends, carried = before["ends"].tolist(), after["carried"]
        for world, link in carried.nonzero().tolist():
            start, end = ends[world][link]
            kind = int(action[world, link]) - 1
            for _ in range(int(carried[world, link])):
                packet = self.queues[world, start, kind].popleft()
                packet.hops += 1
                moved.append((world, end, packet))
        return moved

    def _deliver(
        self, moved: list[tuple[int, int, _Packet]], before: TensorDictBase
    ) -> list[tuple[int, _Packet]]:
        """Add packets to the queue of their next node; return those at their destination."""
        goals, delivered = before["goals"].tolist(), []
        for world, node, packet in moved:
            if goals[world][packet.kind] == node:
                delivered.append((world, packet))
            else:
                self.queues[world, node, packet.kind].append(packet)
        return delivered

    def _counts(self) -> Tensor:
        """Count the packets in every queue, `[B, N, K]` float64."""
        counts = torch.zeros(self.shape, dtype=torch.float64)
        for place, packets in self.queues.items():
            counts[place] = len(packets)
        return counts

    def report(self) -> Journeys:
        """Return the waiting times and hops so far."""
        waiting, age = torch.zeros(2, self.shape[0], self.shape[2], dtype=torch.float64).unbind()
        for (world, _, kind), packets in self.queues.items():
            waiting[world, kind] += len(packets)
            age[world, kind] += sum(self.slot - packet.entered - 1 for packet in packets)
        entered, delivered, sojourn, hops, backlog = self.totals.clone().unbind()
        return Journeys(
            slots=self.slot,
            entered=entered,
            delivered=delivered,
            sojourn=sojourn,
            hops=hops,
            waiting=waiting,
            age=age,
            backlog_sum=backlog,
        )


@dataclass
class _Packet:
    """One packet: its class, the slot of its arrival, and the links it took."""

    kind: int
    entered: int
    hops: int = 0
