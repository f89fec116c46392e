"""Edge sources and action layouts by name or address, for environments that leave the choice to a setting."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isabstract
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.graphs import actions
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.edges import EdgeSource, Explicit
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.topology import Topology
from edgewise.plugins import find, name_of

EDGE_SOURCES: Mapping[str, type[EdgeSource]] = {
    name_of(each): each for each in (Explicit, Topology, Radius, Nearest)
}
"""The built-in edge sources by name; plug-ins declare more."""

ACTION_LAYOUTS: Mapping[str, type[ActionLayout]] = {
    name_of(each): each
    for each in vars(actions).values()
    if isinstance(each, type) and issubclass(each, ActionLayout) and not isabstract(each)
}
"""The built-in action layouts by name; plug-ins declare more."""


def make_edge_source(reference: str, **arguments: Any) -> EdgeSource:
    """Build an edge source by its name or address.

    Args:
        reference: `radius`, `nearest`, `explicit` or `topology`, or the name or address of an own one.
        arguments: of its class.

    Raises:
        ConfigError: there is none, its code may not be imported, or an argument does not fit.

    Example:
        >>> make_edge_source("radius", radius=0.4).radius
        0.4
    """
    return _build("edge rule", EDGE_SOURCES, reference, arguments)


def make_action_layout(reference: str, **arguments: Any) -> ActionLayout:
    """Build an action layout by its name or address.

    Args:
        reference: lower-case name of a built-in layout, such as `choosenode`, or the name or address of an
            own one.
        arguments: of its class.

    Raises:
        ConfigError: there is none, its code may not be imported, or an argument does not fit.

    Example:
        >>> make_action_layout("choosenode")
        ChooseNode()
    """
    return _build("action layout", ACTION_LAYOUTS, reference, arguments)


def _build(kind: str, built_in: Mapping[str, type], reference: str, arguments: Mapping[str, Any]) -> Any:
    chosen = built_in[reference] if reference in built_in else find(kind, reference, also=built_in)
    try:
        return chosen(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the {kind} {reference}: {error}") from error
