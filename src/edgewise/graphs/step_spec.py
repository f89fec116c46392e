"""What changes in the steps of an episode, in environments that describe the rest once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgewise.config.errors import ConfigError

NODES, NODE_FEATURES, GRAPH_FEATURES = "nodes", "x", "u"


@dataclass(frozen=True)
class StepSpec:
    """The shape of `step`, which `observe` returns where an environment has `describe`.

    | key | shape | meaning |
    |---|---|---|
    | `nodes` | `[*B]` int64 each, by name | references to nodes, such as the current one; -1 for none |
    | `x` | `[*B, N, F]` float | features of nodes that change |
    | `u` | `[*B, G]` float | features of the graph that change |

    Args:
        references: names of the references, in alphabetical order.
        node_features: number of node features F that change; zero without `x`.
        graph_features: number of graph features G that change; zero without `u`.
    """

    references: tuple[str, ...] = ()
    node_features: int = 0
    graph_features: int = 0

    @classmethod
    def of(cls, step: Mapping[str, Any], *, env: str) -> StepSpec:
        """Read the shape off one `step`, batch size `[B]`.

        Raises:
            ConfigError: it has other entries than those above, or one of another shape or dtype.
        """
        surplus = sorted(set(step.keys()) - {NODES, NODE_FEATURES, GRAPH_FEATURES})
        if surplus:
            raise ConfigError(
                f"`step` that {env}.observe returns has the entries {', '.join(surplus)}",
                hint="it may have `nodes` (references to nodes), `x` (node features), `u` (graph features)",
            )
        references = step.get(NODES, None)
        names = () if references is None else tuple(sorted(references.keys()))
        for name in names:
            value = references[name]
            if value.dim() != 1 or value.is_floating_point():
                raise ConfigError(
                    f"step.nodes.{name} of {env} must be one node number per world, [B] int64, "
                    f"got {list(value.shape)} {value.dtype}"
                )
        widths = []
        for name, dims in ((NODE_FEATURES, 3), (GRAPH_FEATURES, 2)):
            value = step.get(name, None)
            if value is not None and (value.dim() != dims or not value.is_floating_point()):
                shape = "[B, N, F]" if dims == 3 else "[B, G]"
                raise ConfigError(
                    f"step.{name} of {env} must be {shape} float, got {list(value.shape)} {value.dtype}"
                )
            widths.append(0 if value is None else int(value.shape[-1]))
        return cls(names, *widths)
