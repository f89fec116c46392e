"""The systems that ship with edgewise: folders of one anatomy, each with one declaration, `SYSTEM`.

A system declares itself like anyone's plug-in. Nothing below this package imports it.
"""

SYSTEMS = (
    "edgewise.systems.graphwalk",
    "edgewise.systems.queueing",
    "edgewise.systems.multihop",
    "edgewise.systems.swarm",
    "edgewise.systems.marine",
    "edgewise.systems.hex",
    "edgewise.systems.hive",
    "edgewise.systems.reasoning",
)
"""Modules that hold a `SYSTEM`, in the order in which lists show them."""
