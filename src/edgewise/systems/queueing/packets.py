"""A debug mode that follows every packet: who came when, who left when, first in first out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor


@dataclass(frozen=True)
class Sojourns:
    """What became of the packets, each `[B, N]` float64.

    Attributes:
        slots: for how long they were watched.
        departed: packets that left.
        sojourn: slots that those spent waiting, summed; a packet served in the slot of its arrival waited
            none.
        waiting: packets still there.
        age: slots that those have spent so far, summed.
        backlog_sum: packets there at the end of each slot, summed.
    """

    slots: int
    departed: Tensor
    sojourn: Tensor
    waiting: Tensor
    age: Tensor
    backlog_sum: Tensor


class PacketLog:
    """Arrival slots of all packets in all queues, read off an environment's states as it steps.

    Args:
        state: the worlds to follow, whose queues are empty.
        room: packets for which a queue has room; more are an error.

    Example:
        >>> from edgewise.systems.queueing.env import QueueingConfig, QueueingEnv
        >>> env = QueueingEnv(QueueingConfig(), num_envs=4, seed=0)
        >>> root = env.reset()
        >>> log = PacketLog(root["state"])
        >>> root = env.rand_action(root)
        >>> log.follow(root["state"], env.step(root)["next", "state"])
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

    def follow(self, before: TensorDictBase, after: TensorDictBase) -> None:
        """One slot: note who came, then take out who left, the oldest first.

        Packets that come are noted first under either slot order: under the textbook order those that leave
        are older anyway.

        Args:
            before: the state in which the slot began.
            after: the state in which it ended.
        """
        came = (after["arrived"] - before["arrived"]).long()
        left = (before["queues"] - after["queues"]).long() + came
        self._note(came)
        self._take(left)
        self.backlog_sum += after["queues"]
        self.slot += 1

    def _note(self, came: Tensor) -> None:
        room = self.stamps.shape[-1]
        if int((self.tail + came - self.head).max()) > room:
            raise ValueError(f"a queue holds more than {room} packets: give the log more room")
        for turn in range(int(came.max())):
            place = ((self.tail + turn) % room).unsqueeze(-1)
            kept = torch.where((turn < came).unsqueeze(-1), self.slot, self.stamps.gather(-1, place))
            self.stamps.scatter_(-1, place, kept)
        self.tail += came

    def _take(self, left: Tensor) -> None:
        for turn in range(int(left.max())):
            stamp = self._stamp(self.head + turn)
            self.sojourn += torch.where(turn < left, self.slot - stamp, 0)
        self.head += left

    def _stamp(self, number: Tensor) -> Tensor:
        """When the packet of a given number in its queue came, `[B, N]` int64."""
        return self.stamps.gather(-1, (number % self.stamps.shape[-1]).unsqueeze(-1)).squeeze(-1)

    def report(self) -> Sojourns:
        """What became of the packets so far."""
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
