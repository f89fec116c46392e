"""Re-entrant queueing networks: their JSON files, two generated families, and what follows from the rates."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.config import sources
from edgewise.config.errors import DataError
from edgewise.systems.reentrant.config import parse_family

FIELDS = ("server_of_queue", "service_rate", "arrival_rate", "next_queue")
SERVICE_TIMES = ((8.0, 2.0, 4.0), (6.0, 7.0, 1.0))
"""Mean service times of the three queues of servers with even and with odd numbers."""
LOAD = 0.9
"""Share of the time in which the busiest server works, in generated networks."""


@dataclass(frozen=True)
class Network:
    """Q queues at S servers; times are exponential, arrivals Poisson.

    Args:
        name: in logs and errors.
        server: of each queue, from 0.
        service_rate: of each queue.
        arrival_rate: of each queue, from outside.
        next_queue: where a job goes after its service; None where it leaves.
        cost: of a job in each queue per unit of time.
    """

    name: str
    server: tuple[int, ...]
    service_rate: tuple[float, ...]
    arrival_rate: tuple[float, ...]
    next_queue: tuple[int | None, ...]
    cost: tuple[float, ...]

    @property
    def num_queues(self) -> int:
        """Q."""
        return len(self.server)

    @property
    def num_servers(self) -> int:
        """S."""
        return max(self.server) + 1

    def route(self, queue: int) -> list[int]:
        """Return the queues that a job visits from `queue` on, with it."""
        visited: list[int] = []
        following: int | None = queue
        while following is not None:
            visited.append(following)
            following = self.next_queue[following]
        return visited

    def flow(self) -> list[float]:
        """Return the jobs that each queue gets per unit of time, from outside and from other queues."""
        found = [0.0] * self.num_queues
        for queue, rate in enumerate(self.arrival_rate):
            for visited in self.route(queue) if rate else ():
                found[visited] += rate
        return found

    def loads(self) -> list[float]:
        """Return the share of the time in which each server works, if it can keep up."""
        found = [0.0] * self.num_servers
        for queue, flow in enumerate(self.flow()):
            found[self.server[queue]] += flow / self.service_rate[queue]
        return found


def load_networks(names: Sequence[str], *, seed: int = 0) -> list[Network]:
    """Load networks by name: generated ones, and files.

    Args:
        names: such as `reentrant5`, `re-reentrant3*4` or `mine.json`.
        seed: random seed of random service times; copies differ from each other.
    """
    found: list[Network] = []
    for name in names:
        family = parse_family(name)
        if family is None:
            found.append(read_network(Path(name)))
            continue
        kind, servers, copies = family
        if copies is None:
            found.append(generated(kind, servers))
        else:
            found += [
                generated(kind, servers, draw=random.Random(f"{seed} {len(found) + copy}"))
                for copy in range(copies)
            ]
    return found


def generated(kind: str, servers: int, *, draw: random.Random | None = None) -> Network:
    """Generate a network of one of the two families of QGym, with three queues at each server.

    Jobs pass the first queues of all servers in turn, then the second ones. In `reentrant` a second stream
    passes the third queues and leaves; in `re-reentrant` the jobs pass these as well.

    Args:
        kind: `reentrant` or `re-reentrant`.
        servers: S.
        draw: source of random service times between half and twice the usual ones; None for these.

    Example:
        >>> generated("re-reentrant", 2).next_queue
        (3, 4, 5, 1, 2, None)
    """
    queues = 3 * servers
    twice = kind == "re-reentrant"
    onward: dict[int, int | None] = {0: 1, 1: 2 if twice else None, 2: None}
    following = tuple(queue + 3 if queue + 3 < queues else onward[queue % 3] for queue in range(queues))
    times = [SERVICE_TIMES[queue // 3 % 2][queue % 3] for queue in range(queues)]
    if draw is not None:
        times = [time * 2 ** draw.uniform(-1, 1) for time in times]
    busiest = max(sum(times[3 * server : 3 * server + 3]) for server in range(servers))
    rate = LOAD / busiest
    return Network(
        name=f"{kind}{servers}",
        server=tuple(queue // 3 for queue in range(queues)),
        service_rate=tuple(1 / time for time in times),
        arrival_rate=tuple(
            rate if queue == 0 or (queue == 2 and not twice) else 0.0 for queue in range(queues)
        ),
        next_queue=following,
        cost=(1.0,) * queues,
    )


def read_network(path: Path) -> Network:
    """Read and check a network file.

    Raises:
        DataError: with file, field and remedy.
    """
    content = sources.read_json(path, hint="give the path of a network file")
    return parse_network(content, name=str(path))


def parse_network(content: Any, *, name: str) -> Network:
    """Check the content of a network file; `name` is that of the file, for errors."""
    if not isinstance(content, dict):
        raise DataError(f"{name}: expected an object with {', '.join(FIELDS)}")
    known = (*FIELDS, "holding_cost", "name")
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise DataError(f"{name}: {unknown[0]}: unknown field", hint=f"known fields are {', '.join(known)}")
    missing = [field for field in FIELDS if field not in content]
    if missing:
        raise DataError(
            f"{name}: {missing[0]}: missing", hint=f"add {missing[0]}, a list of one entry a queue"
        )
    count = len(_listed(content, "server_of_queue", name))
    lists = {field: _listed(content, field, name, count) for field in FIELDS}
    cost = _listed(content, "holding_cost", name, count) if "holding_cost" in content else [1.0] * count
    network = Network(
        name=name,
        server=tuple(
            _server(value, place, name, count) for place, value in enumerate(lists["server_of_queue"])
        ),
        service_rate=_rates(lists["service_rate"], "service_rate", name, positive=True),
        arrival_rate=_rates(lists["arrival_rate"], "arrival_rate", name),
        next_queue=tuple(_next(value, place, name, count) for place, value in enumerate(lists["next_queue"])),
        cost=_rates(cost, "holding_cost", name),
    )
    _check(network)
    return network


def _listed(content: dict[str, Any], field: str, name: str, count: int | None = None) -> list[Any]:
    value = content[field]
    if not isinstance(value, list) or not value:
        raise DataError(f"{name}: {field}: expected a filled list", hint="give one entry for each queue")
    if count is not None and len(value) != count:
        raise DataError(
            f"{name}: {field}: {len(value)} entries, but server_of_queue has {count}",
            hint="give one entry for each queue",
        )
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _server(value: Any, place: int, name: str, count: int) -> int:
    if not _is_whole(value) or not 0 <= value < count:
        raise DataError(
            f"{name}: server_of_queue[{place}]: expected a server from 0, got {value!r}",
            hint="number the servers from 0 without gaps",
        )
    return int(value)


def _next(value: Any, place: int, name: str, count: int) -> int | None:
    if value is None:
        return None
    if not _is_whole(value) or not 0 <= value < count:
        raise DataError(
            f"{name}: next_queue[{place}]: expected a queue from 0 to {count - 1}, got {value!r}",
            hint="name a queue, or null where jobs leave",
        )
    return int(value)


def _rates(values: list[Any], field: str, name: str, *, positive: bool = False) -> tuple[float, ...]:
    for place, value in enumerate(values):
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (positive and value == 0):
            raise DataError(
                f"{name}: {field}[{place}]: expected a finite number {'above' if positive else 'from'} zero, "
                f"got {value!r}",
                hint="give a rate per unit of time, such as 0.25",
            )
    return tuple(float(value) for value in values)


def _check(network: Network) -> None:
    """Refuse servers without queues, jobs that never leave, no arrivals at all, and overload."""
    absent = set(range(network.num_servers)) - set(network.server)
    if absent:
        raise DataError(
            f"{network.name}: server_of_queue: server {min(absent)} has no queue",
            hint="number the servers from 0 without gaps",
        )
    for queue in range(network.num_queues):
        seen: set[int] = set()
        following: int | None = queue
        while following is not None:
            if following in seen:
                raise DataError(
                    f"{network.name}: next_queue: a job from queue {queue} comes back to queue {following}",
                    hint="end every route with null; visit a server again through another of its queues",
                )
            seen.add(following)
            following = network.next_queue[following]
    if not any(network.arrival_rate):
        raise DataError(f"{network.name}: arrival_rate: no job ever arrives", hint="give a rate above zero")
    for server, load in enumerate(network.loads()):
        if load >= 1:
            raise DataError(
                f"{network.name}: server {server} would have to work {load:.3g} of the time",
                hint="lower arrival_rate, or raise service_rate",
            )
