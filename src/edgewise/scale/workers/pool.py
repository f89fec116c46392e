"""Workers on a Ray cluster; one that dies, hangs or leaves is replaced, and its call is repeated."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from edgewise.config.errors import ProcessLost
from edgewise.config.run import RayConfig
from edgewise.scale.workers.actor import Actor
from edgewise.scale.workers.cluster import connect
from edgewise.scale.workers.message import Failure, Message
from edgewise.scale.workers.worker import Blueprint

POLL = 1.0
"""Longest time in seconds that passes before deadlines are looked at."""
PAUSE = 2.0
"""Seconds before work is repeated that failed because memory was full."""
SLOW_START = 60.0
"""Seconds after which a worker that has not started is mentioned."""

ENDS = (
    "The object cannot be created",
    "Worker exit type",
    "Some common causes",
    "Node's IP",
    "Memory on the node",
)
"""Words with which Ray begins to explain an error in general."""
HINT = (
    "continue with `edgewise resume`; ray.attempts and ray.timeout say how patient a run is, and smaller "
    "batches need less memory"
)

log = logging.getLogger(__name__)


@dataclass
class Call:
    """Work for a worker.

    Attributes:
        number: of the call.
        verb: what to do.
        order: a reference to the order, held by Ray.
        message: what else the verb needs.
        attempts: how often it was begun.
    """

    number: int
    verb: str
    order: Any
    message: Message
    attempts: int = 0


@dataclass
class Place:
    """A place for a worker.

    Attributes:
        index: number of the place.
        actor: the worker's handle.
        waiting: the reference whose value is awaited: that of its building, or that of a call.
        built: whether the worker is ready for calls.
        call: the call that it does; None if it is idle.
        since: when the call, or the building of the worker, began.
        pid: of the worker's process.
    """

    index: int
    actor: Any
    waiting: Any
    built: bool = False
    call: Call | None = None
    since: float = field(default_factory=time.monotonic)
    pid: int | None = None


class RayWorkers:
    """Workers on a Ray cluster, see `Workers`.

    Calls go to whichever worker is idle. While fewer workers than places run, such as after a machine has
    left, the others do their work; as soon as Ray can start the rest, they take part again.

    Args:
        blueprint: what each worker builds.
        count: places for workers.
        settings: of the cluster.

    Raises:
        ConfigError: there is no cluster, or a worker cannot be built there.
        ProcessLost: no worker started in time.
    """

    def __init__(self, blueprint: Blueprint, *, count: int, settings: RayConfig) -> None:
        self._settings, self._blueprint = settings, blueprint.to_json()
        self._ray, self._is_ours = connect(settings, workers=count)
        self._class = self._ray.remote(num_cpus=settings.cpus, max_restarts=0, max_task_retries=0)(Actor)
        self._calls: deque[Call] = deque()
        self._replies: dict[int, Message] = {}
        self._submitted = 0
        self._failed_starts, self._is_missing_said = 0, False
        self._worked_at = time.monotonic()
        self._places = [self._start(index) for index in range(count)]
        try:
            while not any(place.built for place in self._places):
                self._step()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes of workers that are ready, on their machines."""
        return [place.pid for place in self._places if place.built and place.pid is not None]

    def share(self, order: Message) -> Any:
        """Put an order into the object store, from which each machine fetches it once.

        Raises:
            ProcessLost: there is no room for it.
        """
        for attempt in range(1, self._settings.attempts + 1):
            try:
                return self._ray.put(order)
            except (self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError) as error:
                if attempt == self._settings.attempts:
                    raise ProcessLost(_full(error), hint=HINT) from error
                log.warning("the object store of Ray is full; the weights are sent again in %g s", PAUSE)
                time.sleep(PAUSE)
        raise AssertionError("there is at least one attempt")

    def submit(self, verb: str, order: Any, call: Message, *, first: bool = False) -> int:
        """Have a call done, before all that wait if `first`."""
        self._submitted += 1
        made = Call(self._submitted, verb, order, call)
        (self._calls.appendleft if first else self._calls.append)(made)
        self._assign()
        return self._submitted

    def wait(self, numbers: Collection[int]) -> int:
        """Wait until one of these calls is done.

        Raises:
            ProcessLost: there are no workers any more, or a call has failed too often.
        """
        while True:
            for number in numbers:
                if number in self._replies:
                    return number
            self._step()

    def take(self, number: int) -> Message:
        """Return the reply of a call that is done, and forget it."""
        return self._replies.pop(number)

    def close(self) -> None:
        """End the workers, and the connection if it was made here."""
        for place in self._places if hasattr(self, "_places") else ():
            self._end(place)
        self._calls.clear()
        self._replies.clear()
        if self._is_ours:
            self._ray.shutdown()
            self._is_ours = False

    def _start(self, index: int) -> Place:
        """Have Ray start a worker, as soon as there is room for it."""
        actor = self._class.remote()
        return Place(index, actor, actor.build.remote(self._blueprint))

    def _end(self, place: Place) -> None:
        try:
            self._ray.kill(place.actor, no_restart=True)
        except (self._ray.exceptions.RayError, ValueError) as error:
            log.debug("worker %d had ended already: %s", place.index, error)

    def _step(self) -> None:
        """Wait until something happens, and deal with it."""
        self._assign()
        awaited = {place.waiting: place for place in self._places if place.waiting is not None}
        done, _ = self._ray.wait(list(awaited), num_returns=1, timeout=POLL)
        for reference in done:
            self._arrived(awaited[reference])
        for place in list(self._late()):
            self._replace(place, f"did not answer within {self._settings.timeout:g} s")
        self._watch()

    def _assign(self) -> None:
        for place in self._places:
            if self._calls and place.built and place.call is None:
                call = self._calls.popleft()
                call.attempts += 1
                place.call, place.since = call, time.monotonic()
                place.waiting = place.actor.answer.remote(call.verb, call.order, call.message)

    def _arrived(self, place: Place) -> None:
        """Take what a worker has returned, or replace it if it is gone."""
        exceptions = self._ray.exceptions
        try:
            found = self._ray.get(place.waiting, timeout=self._settings.timeout)
        except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
            self._again(place, error)
        except exceptions.RayTaskError as error:
            is_full = isinstance(error.cause, (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError))
            (self._again if is_full else self._lost)(place, error)
        except exceptions.RayError as error:
            self._lost(place, error)
        else:
            if place.built:
                assert place.call is not None
                self._replies[place.call.number] = found
                place.call, place.waiting = None, None
            else:
                self._built(place, found)

    def _built(self, place: Place, found: dict[str, Any]) -> None:
        if "pid" not in found:
            raise Failure(**found).error()
        place.built, place.pid, place.waiting = True, found["pid"], None
        self._failed_starts = 0
        if self._is_missing_said and all(each.built for each in self._places):
            self._is_missing_said = False
            log.warning("all %d workers run again", len(self._places))

    def _again(self, place: Place, error: Exception) -> None:
        """Repeat a call whose reply found no room."""
        call = place.call
        place.call, place.waiting = None, None
        if call is not None:
            self._refuse_too_many(call, _full(error))
            log.warning("the object store of Ray is full; a batch is collected again in %g s", PAUSE)
            time.sleep(PAUSE)
            self._calls.appendleft(call)

    def _lost(self, place: Place, error: Exception) -> None:
        if not place.built:
            self._failed_starts += 1
            if self._failed_starts >= self._settings.attempts:
                raise ProcessLost(
                    f"workers cannot start on the cluster: {_reason(error)}",
                    hint="its machines need the same Python packages; continue with `edgewise resume`",
                ) from error
        self._replace(place, f"was lost ({_reason(error)})")

    def _replace(self, place: Place, why: str) -> None:
        """Start another worker in a place, and have its call done again."""
        self._end(place)
        call, place.call = place.call, None
        log.warning(
            "worker %d %s and is replaced%s",
            place.index,
            why,
            "" if call is None else "; its work is repeated",
        )
        if call is not None:
            self._refuse_too_many(call, f"a worker {why}")
            self._calls.appendleft(call)
        self._places[place.index] = self._start(place.index)

    def _refuse_too_many(self, call: Call, why: str) -> None:
        if call.attempts >= self._settings.attempts:
            raise ProcessLost(
                f"workers have failed {call.attempts} times to {call.verb}; the last time, {why}",
                hint=HINT,
            )

    def _late(self) -> Iterator[Place]:
        now = time.monotonic()
        for place in self._places:
            if place.call is not None and now - place.since > self._settings.timeout:
                yield place

    def _watch(self) -> None:
        """Say which workers are missing, and stop if there are none for too long."""
        now = time.monotonic()
        missing = [place for place in self._places if not place.built]
        if not self._is_missing_said and any(now - place.since > SLOW_START for place in missing):
            self._is_missing_said = True
            log.warning(
                "%d of %d workers run; the others start as soon as the cluster has room for them",
                len(self._places) - len(missing),
                len(self._places),
            )
        if len(missing) < len(self._places):
            self._worked_at = now
        elif now - self._worked_at > self._settings.start_timeout:
            there, needed = self._ray.cluster_resources().get("CPU", 0), self._settings.cpus
            raise ProcessLost(
                f"no worker has run for {self._settings.start_timeout:g} s; "
                f"the cluster has {there:g} CPUs, and a worker takes {needed:g}",
                hint="see `ray status`; continue with `edgewise resume` when there is room",
            )


def _full(error: Exception) -> str:
    return f"the object store of Ray was full: {_reason(getattr(error, 'cause', None) or error)}"


def _reason(error: Exception) -> str:
    """Return what an error of Ray says, without the places of its logs."""
    text = " ".join(str(error).split())
    for begin in ("The actor is dead because", "The actor is unavailable", "The node"):
        if begin in text:
            text = text[text.index(begin) :]
    for end in ENDS:
        text = text.partition(end)[0]
    return text.strip().removesuffix(".")[:200] or type(error).__name__
