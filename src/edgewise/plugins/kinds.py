"""The kinds of extensions, and how each is recognised."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any, Literal

from edgewise.config.errors import ConfigError
from edgewise.plugins.declarations import AlgorithmEntry, Environment

Form = Literal["class", "object", "function", "module"]


@dataclass(frozen=True)
class Kind:
    """A kind of extension.

    Args:
        name: as messages call it.
        group: of installed entry points; empty where there are none.
        base: address of the class that it is a subclass or an object of; empty where `methods` decide.
        methods: that it must have.
        form: a class, an object of class `base`, a function, or a module (or anything that has `methods`).
        declaration: class of the objects that declare one with its parts, if there is one.
    """

    name: str
    group: str
    base: str = ""
    methods: tuple[str, ...] = ()
    form: Form = "class"
    declaration: type | None = None

    def fits(self, found: object) -> bool:
        """Return whether an object is of this kind."""
        if self.declaration is not None and isinstance(found, self.declaration):
            return True
        if self.form == "class" and not isinstance(found, type):
            return False
        if self.form == "function" and (not callable(found) or isinstance(found, BuiltinFunctionType)):
            return False
        return self._has_base(found) and all(hasattr(found, method) for method in self.methods)

    def _has_base(self, found: object) -> bool:
        if not self.base:
            return True
        module, _, name = self.base.partition(":")
        # Whatever extends a class has imported its module.
        base = getattr(sys.modules.get(module), name, None)
        if base is None or found is base:
            return False
        return (
            isinstance(found, type) and issubclass(found, base)
            if self.form == "class"
            else isinstance(found, base)
        )

    @property
    def expected(self) -> str:
        """What an object of this kind is, in words."""
        name = self.base.rpartition(":")[2]
        if self.form == "object":
            return f"an object of class {name}"
        if name:
            return f"a subclass of {name}"
        return f"a {self.form} with {', '.join(self.methods)}" if self.methods else f"a {self.form}"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("environment", "edgewise.envs", "edgewise.envs.base:GraphEnv", declaration=Environment),
        Kind(
            "algorithm",
            "edgewise.algorithms",
            methods=("from_setup", "learn", "state_dict", "load_state_dict"),
            declaration=AlgorithmEntry,
        ),
        Kind("recipe", "edgewise.recipes", "edgewise.experiments.recipe:Recipe", form="object"),
        Kind("encoder", "edgewise.encoders", "edgewise.models.encoders.encoder:GraphEncoder"),
        Kind("convolution", "edgewise.convolutions", "torch_geometric.nn:MessagePassing"),
        Kind("head", "edgewise.heads", "edgewise.models.heads:Head"),
        Kind("action layout", "edgewise.action_layouts", "edgewise.graphs.actions:ActionLayout"),
        Kind("edge rule", "edgewise.edge_rules", "edgewise.graphs.edges:EdgeSource"),
        Kind("logger", "edgewise.loggers", "edgewise.training.callbacks:Callback"),
        Kind("verb", "edgewise.verbs", "edgewise.plugins.declarations:Verb", form="object"),
        # The names in a system are known only once it is imported, so entry points declare its parts instead.
        Kind("system", "", "edgewise.plugins.declarations:System", form="object"),
        Kind(
            "evaluation mode",
            "edgewise.evaluation_modes",
            methods=("add_arguments", "is_requested", "run"),
            form="module",
        ),
        Kind("file format", "edgewise.file_formats", methods=("recognises", "planned_runs"), form="module"),
        Kind("baseline", "edgewise.baselines", form="function"),
        Kind("replay", "edgewise.replays", form="function"),
    )
}
"""Every kind of extension by its name."""

NAMED_BY_USER = ("baseline", "replay")
"""Kinds that any function could be of."""


def kind_of(extension: Any) -> str:
    """Return the kind of an extension.

    Raises:
        ConfigError: it is of no kind, or any function could be of it.
    """
    for kind in KINDS.values():
        if kind.name not in NAMED_BY_USER and kind.fits(extension):
            return kind.name
    raise ConfigError(
        f"got {extension!r}, expected an environment, algorithm, recipe, logger, verb, System or another "
        "extension",
        hint="say what it is with kind=, such as kind='baseline'",
    )
