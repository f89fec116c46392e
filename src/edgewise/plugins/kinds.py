"""The kinds of extensions: one row says how each is declared, installed, recognised and shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.plugins.declarations import AlgorithmEntry, Environment


@dataclass(frozen=True)
class Kind:
    """A kind of extension.

    Args:
        name: as messages call it.
        group: of installed entry points.
        base: address of the class that it is a subclass of, or an object of if `is_object`.
        is_object: whether it is an object instead of a class.
        declaration: class of the objects that declare one with its parts, if there is one.
        built_in: address of the table of those in the core, if there are any.
    """

    name: str
    group: str
    base: str
    is_object: bool = False
    declaration: type[Environment | AlgorithmEntry] | None = None
    built_in: str = ""

    def fits(self, found: object) -> bool:
        """Return whether an object is of this kind."""
        if self.declaration is not None and isinstance(found, self.declaration):
            return True
        module, _, name = self.base.partition(":")
        # Whatever extends a class has imported its module.
        base = getattr(sys.modules.get(module), name, None)
        if base is None or found is base:
            return False
        return (
            isinstance(found, base) if self.is_object else isinstance(found, type) and issubclass(found, base)
        )

    def declare(self, found: Any, *, summary: str, **parts: Any) -> Any:
        """Return what lists hold: the declaration of a class or entry point, or that itself."""
        if self.declaration is None or isinstance(found, self.declaration):
            return found
        return self.declaration(found, summary=summary, **parts)

    @property
    def part(self) -> str:
        """The field of a `System` that declares it by name."""
        return f"{self.name}s"

    @property
    def expected(self) -> str:
        """What an object of this kind is, in words."""
        return f"{'an object' if self.is_object else 'a subclass'} of {self.base.rpartition(':')[2]}"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("environment", "edgewise.envs", "edgewise.envs.base:GraphEnv", declaration=Environment),
        Kind(
            "algorithm",
            "edgewise.algorithms",
            "edgewise.algorithms.algorithm:Algorithm",
            declaration=AlgorithmEntry,
            built_in="edgewise.algorithms.registry:ALGORITHMS",
        ),
        Kind("recipe", "edgewise.recipes", "edgewise.experiments.recipe:Recipe", is_object=True),
        Kind(
            "encoder",
            "edgewise.encoders",
            "edgewise.models.encoders.encoder:GraphEncoder",
            built_in="edgewise.models.config:BUILT_IN_ENCODERS",
        ),
        Kind("convolution", "edgewise.convolutions", "torch_geometric.nn:MessagePassing"),
        Kind("head", "edgewise.heads", "edgewise.models.heads:Head"),
        Kind("logger", "edgewise.loggers", "edgewise.training.callbacks:Callback"),
        Kind("system", "edgewise.systems", "edgewise.plugins.declarations:System", is_object=True),
    )
}
"""Every kind of extension by its name."""


def kind_of(extension: Any) -> Kind:
    """Return the kind of an extension.

    Raises:
        ConfigError: it is of no kind.
    """
    for kind in KINDS.values():
        if kind.fits(extension):
            return kind
    raise ConfigError(f"got {extension!r}, expected one of: {', '.join(KINDS)}")
