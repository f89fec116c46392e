"""Read instances in the formats in which people share them. Never imports torch.

| format | problem | files |
|---|---|---|
| TSPLIB | `tsp` | `.tsp` with `EUC_2D` coordinates |
| CVRPLIB | `cvrp` | `.vrp` with `EUC_2D` coordinates, demands and one depot |
| Taillard | `job_shop` | the jobs and machines in the first line, then pairs of machine and duration |
| DIMACS | `vertex_cover`, `independent_set`, `max_cut`, `coloring` | `p edge N M`, then `e ONE OTHER` |
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgewise.config import sources
from edgewise.config.errors import DataError

LARGEST = 10_000
"""Most nodes, jobs or machines that a file may have."""


@dataclass(frozen=True)
class Plane:
    """Places of nodes; the first is the depot where there are demands.

    Attributes:
        places: coordinates of each node.
        demands: of each node, zero for the depot; empty without.
        capacity: of a vehicle; zero without.
    """

    places: tuple[tuple[float, float], ...]
    demands: tuple[float, ...] = ()
    capacity: float = 0.0


@dataclass(frozen=True)
class Shop:
    """A job shop.

    Attributes:
        machines: the machine of each operation, job by job.
        durations: of each operation, job by job.
    """

    machines: tuple[tuple[int, ...], ...]
    durations: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Links:
    """An undirected graph.

    Attributes:
        num_nodes: number of nodes.
        edges: pairs of different nodes, from 0 on; each once.
    """

    num_nodes: int
    edges: tuple[tuple[int, int], ...]


class Lines:
    """The lines of a file, with errors that name the file and the line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = sources.read_text(path).splitlines()

    def error(self, number: int | None, message: str) -> DataError:
        """Return an error about a line, counted from 0, or about the whole file."""
        where = str(self.path) if number is None else f"{self.path}, line {number + 1}"
        return DataError(f"{where}: {message}")

    def numbers(self, number: int, *, count: int | None = None) -> list[float]:
        """Return the numbers of a line.

        Raises:
            DataError: a word is no finite number, or there are more or fewer than `count`.
        """
        found = []
        for word in self.lines[number].split():
            value = _number(word)
            if value is None:
                raise self.error(number, f"got {word[:40]!r}, expected a number")
            found.append(value)
        if count is not None and len(found) != count:
            raise self.error(number, f"got {len(found)} numbers, expected {count}")
        return found

    def whole(self, number: int, value: float, *, least: int, most: int, what: str) -> int:
        """Return a number as an integer within bounds.

        Raises:
            DataError: it is none.
        """
        if value != int(value) or not least <= value <= most:
            raise self.error(
                number, f"got {value:g} as {what}, expected a whole number from {least} to {most}"
            )
        return int(value)


def _number(word: str) -> float | None:
    """Return a finite number of at most 40 characters; None if a word is none."""
    if len(word) > 40:
        return None
    try:
        value = float(word)
    except ValueError:
        return None
    return value if abs(value) < 1e15 else None


def read_plane(path: Path) -> Plane:
    """Read a file of TSPLIB or CVRPLIB with Euclidean coordinates.

    Raises:
        DataError: naming file and line.
    """
    lines = Lines(path)
    fields, sections = _sections(lines)
    kind = fields.get("EDGE_WEIGHT_TYPE", ("EUC_2D", None))
    if kind[0] != "EUC_2D":
        raise lines.error(kind[1], f"EDGE_WEIGHT_TYPE is {kind[0][:40]}, expected EUC_2D")
    count = _field(lines, fields, "DIMENSION", most=LARGEST)
    places = _table(lines, sections, "NODE_COORD_SECTION", count=count, width=2)
    rows = [(places[node][0], places[node][1]) for node in range(1, count + 1)]
    if "DEMAND_SECTION" not in sections:
        return Plane(tuple(rows))
    demands = _table(lines, sections, "DEMAND_SECTION", count=count, width=1)
    depot = _depot(lines, sections, count)
    order = [depot, *(node for node in range(1, count + 1) if node != depot)]
    found = tuple(demands[node][0] for node in order)
    if found[0] != 0 or min(found) < 0:
        raise lines.error(None, "demands must not be negative, and the depot must have none")
    capacity = _field(lines, fields, "CAPACITY", most=10**9)
    if max(found) > capacity:
        raise lines.error(None, f"a demand of {max(found):g} exceeds the capacity of {capacity}")
    return Plane(tuple(rows[node - 1] for node in order), found, float(capacity))


Fields = dict[str, tuple[str, int | None]]


def _sections(lines: Lines) -> tuple[Fields, dict[str, list[int]]]:
    """Return the fields `NAME : VALUE`, and the numbers of the lines of every section."""
    fields: Fields = {}
    sections: dict[str, list[int]] = {}
    current: list[int] | None = None
    for number, line in enumerate(lines.lines):
        text = line.strip()
        if not text or text == "EOF":
            continue
        if text.endswith("_SECTION"):
            current = sections.setdefault(text, [])
        elif ":" in text:
            name, _, value = text.partition(":")
            fields[name.strip()] = (value.strip(), number)
        elif current is not None:
            current.append(number)
        else:
            raise lines.error(number, f"got {text[:40]!r}, expected `NAME : VALUE` or a section")
    return fields, sections


def _field(lines: Lines, fields: Fields, name: str, *, most: int) -> int:
    """Return a field that is a whole number, one or more."""
    if name not in fields:
        raise lines.error(None, f"it has no {name}")
    text, number = fields[name]
    value = _number(text)
    if value is None or number is None:
        raise lines.error(number, f"got {text[:40]!r} as {name}, expected a number")
    return lines.whole(number, value, least=1, most=most, what=name)


def _table(
    lines: Lines, sections: dict[str, list[int]], name: str, *, count: int, width: int
) -> dict[int, list[float]]:
    """Return the rows of a section by the number of their node, from 1 to `count`."""
    if name not in sections:
        raise lines.error(None, f"it has no {name}")
    rows: dict[int, list[float]] = {}
    for number in sections[name]:
        found = lines.numbers(number, count=width + 1)
        node = lines.whole(number, found[0], least=1, most=count, what="node")
        if node in rows:
            raise lines.error(number, f"node {node} occurs twice in {name}")
        rows[node] = found[1:]
    if len(rows) != count:
        raise lines.error(None, f"{name} has {len(rows)} nodes, expected {count}, the DIMENSION")
    return rows


def _depot(lines: Lines, sections: dict[str, list[int]], count: int) -> int:
    """Return the number of the depot, which `DEPOT_SECTION` lists before -1; node 1 without."""
    found = []
    for number in sections.get("DEPOT_SECTION", []):
        value = lines.numbers(number, count=1)[0]
        if value != -1:
            found.append(lines.whole(number, value, least=1, most=count, what="depot"))
    if len(found) > 1:
        raise lines.error(None, f"it has {len(found)} depots, expected one")
    return found[0] if found else 1


def read_shop(path: Path) -> Shop:
    """Read a job shop: jobs and machines, then a line of machines and durations for every job.

    Lines that begin with `#` are comments. Machines count from 0.

    Raises:
        DataError: naming file and line.
    """
    lines = Lines(path)
    kept = [n for n, line in enumerate(lines.lines) if line.strip() and not line.lstrip().startswith("#")]
    if not kept:
        raise lines.error(None, "it is empty, expected jobs and machines in the first line")
    sizes = lines.numbers(kept[0], count=2)
    jobs, machines = (
        lines.whole(kept[0], value, least=1, most=LARGEST, what=what)
        for value, what in zip(sizes, ("jobs", "machines"), strict=True)
    )
    if len(kept) - 1 != jobs:
        raise lines.error(None, f"it has {len(kept) - 1} jobs, expected {jobs}, the number in its first line")
    order, durations = [], []
    for number in kept[1:]:
        row = lines.numbers(number, count=2 * machines)
        visited = [lines.whole(number, one, least=0, most=machines - 1, what="machine") for one in row[::2]]
        if len(set(visited)) != machines:
            raise lines.error(number, "a job must visit every machine once")
        if min(row[1::2]) < 0:
            raise lines.error(number, "durations must not be negative")
        order.append(tuple(visited))
        durations.append(tuple(row[1::2]))
    return Shop(tuple(order), tuple(durations))


def read_links(path: Path) -> Links:
    """Read a graph in the format of DIMACS; loops are refused, and an edge that occurs twice counts once.

    Raises:
        DataError: naming file and line.
    """
    lines = Lines(path)
    count, edges = 0, set()
    for number, line in enumerate(lines.lines):
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "p" and len(words) == 4 and not count:
            value = _number(words[2])
            if value is None:
                raise lines.error(number, f"got {words[2][:40]!r} as the number of nodes")
            count = lines.whole(number, value, least=1, most=LARGEST, what="the number of nodes")
        elif words[0] == "e" and len(words) >= 3 and count:
            ends = [_number(word) for word in words[1:3]]
            if None in ends:
                raise lines.error(number, f"got {line.strip()[:40]!r}, expected `e ONE OTHER`")
            one, other = (
                lines.whole(number, end or 0.0, least=1, most=count, what="node") - 1 for end in ends
            )
            if one == other:
                raise lines.error(number, f"node {one + 1} is joined with itself")
            edges.add((min(one, other), max(one, other)))
        else:
            raise lines.error(
                number, f"got {line.strip()[:40]!r}, expected `p edge N M` once, then `e ONE OTHER`"
            )
    if not count:
        raise lines.error(None, "it has no line `p edge N M`")
    return Links(count, tuple(sorted(edges)))
