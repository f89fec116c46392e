"""A debug mode that follows every packet through a network, hop by hop: what each class waited for."""

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
    """What became of the packets of each class, each `[B, K]` float64.

    A packet is there at the end of a slot if it entered in an earlier slot and was not delivered; those
    slots are what it waits, so that waiting times add up to the backlog that is charged.

    Attributes:
        slots: for how long they were watched.
        entered: packets that came.
        delivered: packets that reached their destination.
        sojourn: slots that those spent in the network, summed.
        hops: links that those took, summed.
        waiting: packets on their way.
        age: slots that those have spent so far, summed.
        backlog_sum: packets there at the end of each slot before new ones come, summed.
    """

    slots: int
    entered: Tensor
    delivered: Tensor
    sojourn: Tensor
    hops: Tensor
    waiting: Tensor
    age: Tensor
    backlog_sum: Tensor


class JourneyLog:
    """Every packet of some worlds as an object of its own, first in first out in every queue.

    It is for checks, not for speed. It moves its own packets by what the links are said to have carried and
    compares their number with the environment's queues after every slot.

    Args:
        state: the worlds to follow, whose queues are empty.

    Example:
        >>> env = MultihopEnv(MultihopConfig(networks=("two-path",)), num_envs=2, seed=0)
        >>> root = env.rand_action(env.reset())
        >>> log = JourneyLog(root["state"])
        >>> log.follow(root["state"], root["action"], env.step(root)["next", "state"])
    """

    def __init__(self, state: TensorDictBase) -> None:
        if bool((state["queues"] > 0).any()):
            raise ValueError("packets can only be followed from empty queues")
        self.shape = state["queues"].shape
        self.queues: dict[Place, deque[_Packet]] = defaultdict(deque)
        self.totals = torch.zeros(5, self.shape[0], self.shape[2], dtype=torch.float64)
        self.slot = 0

    def follow(self, before: TensorDictBase, action: Tensor, after: TensorDictBase) -> None:
        """One slot: packets hop, leave at their destination, are counted, and new ones come.

        Args:
            before: the state in which the slot began.
            action: `[B, M]`, the class that each link chose, 0 for none.
            after: the state in which it ended.

        Raises:
            ValueError: a packet is not whole, or the environment counts otherwise.
        """
        entered, delivered, sojourn, hops, backlog = self.totals.unbind()
        for world, packet in self._arrivals(self._hop(before, action, after), before):
            delivered[world, packet.kind] += 1
            sojourn[world, packet.kind] += self.slot - packet.entered - 1
            hops[world, packet.kind] += packet.hops
        backlog += self._counts().sum(1)
        came = after["queues"].double() - self._counts()
        if bool((came < 0).any()) or bool((came != came.round()).any()):
            raise ValueError(f"slot {self.slot}: the queues are not those that whole packets would make")
        for world, node, kind in came.nonzero().tolist():
            for _ in range(int(came[world, node, kind])):
                self.queues[world, node, kind].append(_Packet(kind, entered=self.slot))
        entered += came.sum(1)
        self.slot += 1

    def _hop(
        self, before: TensorDictBase, action: Tensor, after: TensorDictBase
    ) -> list[tuple[int, int, _Packet]]:
        """Take carried packets from their queues: world, next node and packet of each."""
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

    def _arrivals(
        self, moved: list[tuple[int, int, _Packet]], before: TensorDictBase
    ) -> list[tuple[int, _Packet]]:
        """Put packets where they went, but for those that are at their destination, which are returned."""
        goals, arrived = before["goals"].tolist(), []
        for world, node, packet in moved:
            if goals[world][packet.kind] == node:
                arrived.append((world, packet))
            else:
                self.queues[world, node, packet.kind].append(packet)
        return arrived

    def _counts(self) -> Tensor:
        """Packets in every queue, `[B, N, K]` float64."""
        counts = torch.zeros(self.shape, dtype=torch.float64)
        for place, packets in self.queues.items():
            counts[place] = len(packets)
        return counts

    def report(self) -> Journeys:
        """What became of the packets so far."""
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
    """One packet: its class, the slot in which it entered, the links it took."""

    kind: int
    entered: int
    hops: int = 0
