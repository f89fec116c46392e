"""Instance files, written from instances."""

from __future__ import annotations

import json
from typing import Any

from edgewise.systems.multihop.networks.instance import Instance


def as_content(instance: Instance) -> dict[str, Any]:
    """Return the instance as the JSON content of its file."""
    links = [
        {"start": link.start, "end": link.end, "rate": link.rate}
        | ({} if link.power is None else {"power": link.power})
        for link in instance.links
    ]
    classes: Any
    if instance.version == 1:
        classes = [
            {"source": source, "destination": traffic.destination, "rate": rate}
            for traffic in instance.classes
            for source, rate in traffic.sources.items()
        ]
    else:
        classes = {
            str(traffic.destination): {str(source): rate for source, rate in traffic.sources.items()}
            for traffic in instance.classes
        }
    return {
        "nodes": instance.num_nodes,
        "link_info": links,
        "class_info": classes,
        "link_distribution": instance.link_law,
        "arrival_distribution": instance.arrival_law,
    }


def write_instance(instance, file):
    """Write an instance file that `read_instance` reads back as the same instance."""
    file.write_text(json.dumps(as_content(instance), indent=1) + "\n", encoding="utf-8")
    return file
