"""Collect and evaluate with workers: shares of the worlds, in batches that are whole and in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from tensordict import TensorDict, TensorDictBase

from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.errors import CheckpointError
from edgewise.data.episodes import INSTANCE, join_shares
from edgewise.data.instance_batch import is_instance_batch, restored
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.evaluation.result import Evaluation
from edgewise.graphs.keys import STALENESS, STEPS
from edgewise.runs.checkpoint import random_state
from edgewise.runs.checkpoint.serialise import State
from edgewise.scale.workers.local import Workers
from edgewise.scale.workers.message import Failure, Message, copied, failure_in, pack, unpack
from edgewise.scale.workers.worker import evaluation_from_state, order_of
from edgewise.training.health import raise_for
from edgewise.training.parts import Evaluate


@dataclass
class Share:
    """A share of the worlds, whose batches are collected one after the other.

    Attributes:
        number: of the share; it decides the random numbers of the share.
        batches: batches that are submitted or done.
        states: by the number of a batch, the state of the worlds before it, as a message.
        done: by the number of a batch, the batch.
        running: the number of the call that is under way; None if there is none.
    """

    number: int
    batches: int
    states: dict[int, Message]
    done: dict[int, TensorDictBase]
    running: int | None = None


class ShardedCollector:
    """Collects batches with workers, each of which has a share of the worlds.

    Batch b is collected with the weights that had learnt from `max(0, b - max_staleness)` batches, whenever
    that happens. So a run has the same result on any cluster, also where workers die or are late.

    A batch that may be older than the weights that learn from it has the entry `staleness [B, T]`, the number
    of updates in between; batches of instances have none, since only replay buffers learn from older ones.

    Args:
        workers: that collect.
        algorithm: whose behaviour policy collects.
        env: that the curriculum changes; workers follow its stage.
        shares: number of shares.
        first_share: number of the first share, where other processes have those before it.
        max_staleness: see above; 0 for batches of the current weights.
    """

    def __init__(
        self,
        workers: Workers,
        algorithm: Algorithm,
        env: GraphEnv[Any],
        *,
        shares: int,
        first_share: int = 0,
        max_staleness: int = 0,
    ) -> None:
        self._workers, self._algorithm, self._env = workers, algorithm, env
        self._first, self._max_staleness = first_share, max_staleness
        self._shares = [Share(first_share + index, 0, {0: pack({})}, {}) for index in range(shares)]
        self._orders: dict[int, Message] = {}
        self._sent: dict[int, Any] = {}
        self._returned = 0

    def collect(self) -> TensorDictBase:
        """Return the next batch of all shares, `[B, T]`."""
        wanted = self._returned
        self._orders[wanted] = copied(pack(self._order()))
        self._submit()
        while any(wanted not in share.done for share in self._shares):
            running = {share.running: share for share in self._shares if share.running is not None}
            number = self._workers.wait([each for each in running if each is not None])
            self._receive(running[number], self._workers.take(number))
            self._submit()
        parts = [share.done.pop(wanted) for share in self._shares]
        has_episodes = INSTANCE in parts[0].get(STEPS, parts[0])
        batch = join_shares(parts) if has_episodes else TensorDict.cat(parts)
        batch = batch.to(self._env.device)
        self._returned += 1
        for share in self._shares:
            del share.states[wanted]
        oldest = self._version(self._returned)
        for version in [each for each in self._orders if each < oldest]:
            self._orders.pop(version)
            self._sent.pop(version, None)
        if self._max_staleness and not is_instance_batch(batch):
            age = torch.full(batch.batch_size, wanted - self._version(wanted), device=batch.device)
            batch.set(STALENESS, age)
        return batch

    def metrics(self) -> dict[str, float]:
        """Return how many updates the weights of the last batch were behind, if they may be."""
        last = self._returned - 1
        return {"staleness": last - self._version(last)} if self._max_staleness else {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every share before its next batch, and the weights that will collect it.

        Batches that are under way are collected again after `load_state_dict`, with the same result.
        """
        return {
            "batches": self._returned,
            "shares": [unpack(copied(share.states[self._returned])) for share in self._shares],
            "orders": {version: unpack(order) for version, order in self._orders.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next batch is then bit-equal to that of the saved collector.

        Raises:
            CheckpointError: it has another number of shares.
        """
        if len(state["shares"]) != len(self._shares):
            raise CheckpointError(
                f"workers: the worlds were shared by {len(state['shares'])} workers, got {len(self._shares)}",
                hint="a run continues with as many workers as it began with; fewer of them may be running",
            )
        self._returned = int(state["batches"])
        self._orders = {int(version): copied(pack(order)) for version, order in state["orders"].items()}
        self._sent = {}
        self._shares = [
            Share(self._first + index, self._returned, {self._returned: copied(pack(each))}, {})
            for index, each in enumerate(state["shares"])
        ]

    def close(self) -> None:
        """End the workers."""
        self._workers.close()

    def _order(self) -> State:
        return {**order_of(self._algorithm), "stage": self._env.state_dict()["stage"]}

    def _version(self, batch: int) -> int:
        """Return the number of batches that the weights that collect a batch have learnt from."""
        return max(0, batch - self._max_staleness)

    def _submit(self) -> None:
        """Begin the next batch of every share that is idle, if its weights are known."""
        for share in self._shares:
            version = self._version(share.batches)
            if share.running is not None or version not in self._orders:
                continue
            if version not in self._sent:
                self._sent[version] = self._workers.share(self._orders[version])
            call = pack({"share": share.number, "state": unpack(share.states[share.batches])})
            share.running = self._workers.submit("collect", self._sent[version], call)
            share.batches += 1

    def _receive(self, share: Share, message: Message) -> None:
        reply = unpack(message)
        failure = failure_in(reply)
        if failure is not None:
            self._raise(failure)
        share.running = None
        batch = restored(reply["batch"], device="cpu")
        batch.batch_size = reply["size"]
        share.done[share.batches - 1] = batch
        share.states[share.batches] = copied(pack(reply["state"]))

    def _raise(self, failure: Failure) -> NoReturn:
        """Raise the error of a worker, with the observation that it failed on."""
        if failure.root is None:
            raise failure.error()
        root = TensorDict(failure.root["entries"], failure.root["size"]).clone().to(self._env.device)
        raise_for(root, failure.error())


class RemoteEvaluator:
    """Evaluates the policy of a run with a worker, with the result that this process would have.

    Args:
        workers: one of them evaluates, while others go on collecting.
        algorithm: whose policy is evaluated.
        here: evaluates other policies, such as baselines, in this process.
    """

    def __init__(self, workers: Workers, algorithm: Algorithm, here: Evaluate) -> None:
        self._workers, self._algorithm, self._here = workers, algorithm, here

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Evaluate on the fixed instances."""
        if policy is not self._algorithm.policy:
            return self._here(policy, record=record)
        order = self._workers.share(copied(pack(order_of(self._algorithm))))
        call = pack({"record": record, "random": random_state.capture()})
        number = self._workers.submit("evaluate", order, call, first=True)
        self._workers.wait([number])
        reply = unpack(self._workers.take(number))
        failure = failure_in(reply)
        if failure is not None:
            raise failure.error()
        return evaluation_from_state(reply)
