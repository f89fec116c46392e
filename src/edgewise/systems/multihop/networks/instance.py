"""Network instances and their JSON files: reading with full checks, and writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgewise.config import sources
from edgewise.config.errors import DataError
from edgewise.systems.multihop.networks.check import Fields, parse_json, unreachable

LinkLaw = Literal["fixed", "poisson"]
IGNORED = ("seed", "topology_type", "action_func", "metrics", "baselines")
"""Fields of a file that the simulator ignores."""


@dataclass(frozen=True)
class Link:
    """A directed link and its rate in packets per slot."""

    start: int
    end: int
    rate: float
    power: float | None = None


@dataclass(frozen=True)
class TrafficClass:
    """A destination and the arrival rate of each source."""

    destination: int
    sources: Mapping[int, float]


@dataclass(frozen=True)
class Instance:
    """One network with its traffic.

    Args:
        name: name in logs and errors.
        num_nodes: N.
        links: M directed links.
        classes: K classes.
        link_law: distribution of the capacities.
        arrival_law: distribution of the arrivals.
        version: 1 writes classes as single flows, 2 as destinations.
    """

    name: str
    num_nodes: int
    links: tuple[Link, ...]
    classes: tuple[TrafficClass, ...]
    link_law: LinkLaw = "fixed"
    arrival_law: LinkLaw = "poisson"
    version: Literal[1, 2] = 2

    @property
    def load(self) -> float:
        """Total arrival rate of all classes, in packets per slot."""
        return sum(rate for traffic in self.classes for rate in traffic.sources.values())


def read_instance(path: Path | str) -> Instance:
    """Read and check one instance file.

    Raises:
        DataError: with file, field and remedy.
    """
    file = Path(path)
    text = sources.read_text(file, hint="give the path of an instance file")
    return parse_instance(parse_json(text, str(file)), name=str(file))


def parse_instance(content: object, *, name: str) -> Instance:
    """Check the content of an instance file.

    Args:
        content: parsed JSON.
        name: name of the file, for errors.
    """
    top = Fields.of(content, name, "")
    top.only("nodes", "link_info", "class_info", "link_distribution", "arrival_distribution", *IGNORED)
    count = top.count("nodes")
    link_law = top.choice("link_distribution", ("fixed", "poisson"))
    arrival_law = top.choice("arrival_distribution", ("poisson", "fixed"))
    links = _links(top, count, whole=link_law == "fixed")
    version: Literal[1, 2] = 1 if isinstance(top.value("class_info"), list) else 2
    classes = (_flows if version == 1 else _destinations)(top, count, whole=arrival_law == "fixed")
    instance = Instance(
        name=name,
        num_nodes=count,
        links=links,
        classes=classes,
        link_law="fixed" if link_law == "fixed" else "poisson",
        arrival_law="fixed" if arrival_law == "fixed" else "poisson",
        version=version,
    )
    _check_reachable(instance)
    return instance


def _links(top: Fields, count: int, *, whole: bool) -> tuple[Link, ...]:
    links: dict[tuple[int, int], Link] = {}
    for entry in top.entries("link_info", "one {start, end, rate} for each directed link"):
        entry.only("start", "end", "rate", "power")
        start, end = entry.node("start", count), entry.node("end", count)
        if start == end:
            entry.fail(
                "end", f"node {end} is also the start", "a link joins two different nodes; leave it out"
            )
        if (start, end) in links:
            entry.fail(
                "start",
                f"link {start}→{end} was given before",
                "give each link once, with the sum of the rates",
            )
        power = entry.rate("power") if "power" in entry.content else None
        links[start, end] = Link(start, end, entry.rate("rate", positive=True, whole=whole), power)
    return tuple(links.values())


def _destinations(top: Fields, count: int, *, whole: bool) -> tuple[TrafficClass, ...]:
    """Read version 2: `{destination: {source: rate}}`."""
    classes = []
    table = top.table("class_info", "{destination: {source: rate}}, or a list of flows")
    for key in table.content:
        destination = table.key_node(key, count)
        flows = table.table(key, "{source: rate}")
        sources = {flows.key_node(source, count): flows.rate(source, whole=whole) for source in flows.content}
        if destination in sources:
            flows.fail(str(destination), "a class has its destination as source", "leave this source out")
        classes.append(TrafficClass(destination, sources))
    return tuple(classes)


def _flows(top: Fields, count: int, *, whole: bool) -> tuple[TrafficClass, ...]:
    """Read version 1: a list of `{source, destination, rate}`."""
    classes = []
    for entry in top.entries("class_info", "one {source, destination, rate} for each flow"):
        entry.only("source", "destination", "rate")
        source, destination = entry.node("source", count), entry.node("destination", count)
        if source == destination:
            entry.fail("destination", f"node {source} is also the source", "leave this flow out")
        classes.append(TrafficClass(destination, {source: entry.rate("rate", whole=whole)}))
    return tuple(classes)


def _check_reachable(instance: Instance) -> None:
    """Refuse an instance in which a source cannot reach its destination."""
    pairs = [(link.start, link.end) for link in instance.links]
    for number, traffic in enumerate(instance.classes):
        key = f"[{number}]" if instance.version == 1 else f".{traffic.destination}"
        for source in unreachable(traffic.sources, traffic.destination, pairs):
            raise DataError(
                f"{instance.name}: class_info{key}: no path over the links from source {source} "
                f"to destination {traffic.destination}",
                hint="add the missing links to link_info, or leave this source out",
            )
