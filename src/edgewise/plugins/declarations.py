"""What can be declared: environments, algorithms, verbs, and systems of these. Never imports torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from edgewise.config.errors import ConfigError
from edgewise.plugins.addresses import Address, load, resolve_part

if TYPE_CHECKING:
    from edgewise.config.model import Config


RANDOM = "random"
"""Name of the baseline that samples legal actions at random."""


@dataclass(frozen=True)
class Verb:
    """A verb of the command line: `edgewise NAME`, or `edgewise SYSTEM NAME` if a system declares it.

    Args:
        name: what users type.
        summary: one line for help texts.
        module: module or object with `configure(parser)` and `run(options, console)`, or the name of such a
            module, which is imported when the verb is used.
    """

    name: str
    summary: str
    module: Any

    def load(self) -> Any:
        """Import the module.

        Raises:
            ConfigError: it has no `configure` and `run`.
        """
        found = import_module(self.module) if isinstance(self.module, str) else self.module
        if not (hasattr(found, "configure") and hasattr(found, "run")):
            raise ConfigError(
                f"the verb {self.name}: {found!r} has no `configure(parser)` and `run(options, console)`"
            )
        return found


def random_actions(env: Any) -> Callable[..., Any]:
    """Return the policy that samples legal actions at random: a baseline of every environment."""
    policy: Callable[..., Any] = env.rand_action
    return policy


class Baselines(dict[str, Callable[..., Any]]):
    """The baselines of an environment by name; an address leads to a function of `env`.

    Every environment has `random`, even if it is not listed.
    """

    def names(self) -> list[str]:
        """Return all names, in alphabetical order."""
        return sorted({*self, RANDOM})

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or name == RANDOM:
            return True
        return isinstance(name, str) and Address.parse(name) is not None

    def __missing__(self, name: str) -> Callable[..., Any]:
        if name == RANDOM:
            return random_actions
        from edgewise.plugins.finding import find_function

        return find_function(name, of="env", what="baseline")


@dataclass(frozen=True)
class Environment:
    """The parts of an environment, each as an address `module:name` or as the object itself.

    Only `env` is needed. Parts that are not given are found beside it: its config is the one that
    `GraphEnv[...]` is subscripted with; `BASELINES` and `replay` are looked up in its class, then in its
    module.

    Args:
        env: the subclass of `GraphEnv`.
        config: its settings; importing them must not import torch.
        summary: one sentence for lists.
        baselines: mapping from names to functions that build a policy for an environment.
        replay: function that turns the states of one episode into a replay.
        model: config class of the model that suits it best; that of the algorithm if not given.
        self_play: whether two players move in turn; found from its observations if not given.
        exploitability: function that finds the positions in which a player can be beaten, exactly.
        opponents: mapping from a scheme, as in `scheme:rest`, to an `Opponent` (`experiments/opponents.py`).
        board: function that shows one world of a game on the page of `edgewise play`.
        record: function that writes a game from its moves.
        references: function of an environment, or None in games, that names the rules to compare with
            (`experiments/learning_pays.py`).
        slow_baselines: baselines that take over a millisecond per decision; `quick` leaves them out.
    """

    env: Any
    config: Any = None
    summary: str = ""
    baselines: Any = None
    replay: Any = None
    model: Any = None
    self_play: bool | None = None
    exploitability: Any = None
    opponents: Any = None
    board: Any = None
    record: Any = None
    references: Any = None
    slow_baselines: tuple[str, ...] = ()

    def load(self, part: str) -> Any:
        """Return one part by its field name, imported if it is an address; None if there is none."""
        given = getattr(self, part)
        if given is not None:
            return resolve_part(given)
        if part == "config":
            return config_class_of(self.load("env"))
        if part in ("baselines", "replay"):
            return _beside(self.load("env"), {"baselines": "BASELINES", "replay": "replay"}[part])
        return None

    def load_baselines(self) -> Baselines:
        """Return the baselines by name; those that are addressed are found too.

        An environment that declares none has `random`.
        """
        found = self.load("baselines")
        if found is not None and not isinstance(found, Mapping):
            raise ConfigError(
                f"BASELINES of {self.env}: got {type(found).__name__}, expected names and functions"
            )
        return Baselines(found or {RANDOM: random_actions})


@dataclass(frozen=True)
class AlgorithmEntry:
    """The parts of an algorithm, each as an address or as the object itself.

    Args:
        algorithm: class with `from_setup`, `policy`, `learn`, `state_dict` and `load_state_dict`.
        config: its settings; `config_class` of the algorithm if not given.
        model: config class of its model; `model_config_class` of the algorithm, or the usual actor-critic.
        self_play_config: settings in games of two players, if it can learn them.
        summary: one sentence for lists.
    """

    algorithm: Any
    config: Any = None
    model: Any = None
    self_play_config: Any = None
    summary: str = ""

    def load(self, part: str) -> Any:
        """Return one part by its field name, imported if it is an address."""
        given = getattr(self, part)
        if given is not None:
            return resolve_part(given)
        if part in ("config", "model"):
            from edgewise.config.model import Config

            cls = self.load("algorithm")
            name = {"config": "config_class", "model": "model_config_class"}[part]
            found = getattr(cls, name, None)
            if found is None and part == "model":
                return load("edgewise.models.config:ModelConfig")
            if not (isinstance(found, type) and issubclass(found, Config)):
                raise ConfigError(f"{cls.__name__}.{name}: got {found!r}, expected a subclass of ew.Config")
            return found
        return None


@dataclass(frozen=True)
class System:
    """Everything that one system brings, by name.

    Args:
        name: of the system.
        environments: by name.
        algorithms: by name.
        recipes: name to a `Recipe` or its address.
        verbs: for the command line, as `edgewise SYSTEM VERB`.
        summary: one sentence for help texts.
        encoders: value of `model.encoder.kind` to a class or its address.
        convolutions: value of `model.encoder.conv` to a class or its address.
        heads: value of `model.head` to a class or its address.
        loggers: name to a class or its address.
    """

    name: str
    environments: Mapping[str, Environment] = field(default_factory=dict)
    algorithms: Mapping[str, AlgorithmEntry] = field(default_factory=dict)
    recipes: Mapping[str, Any] = field(default_factory=dict)
    verbs: Sequence[Verb] = ()
    encoders: Mapping[str, Any] = field(default_factory=dict)
    convolutions: Mapping[str, Any] = field(default_factory=dict)
    heads: Mapping[str, Any] = field(default_factory=dict)
    loggers: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""


def config_class_of(env: type) -> type[Config]:
    """Return the config class that an environment's base `GraphEnv[...]` is subscripted with.

    Raises:
        ConfigError: there is none.
    """
    # Pydantic is slow to import, and listing declarations needs none of it.
    from edgewise.config.model import Config

    for owner in env.__mro__:
        for base in getattr(owner, "__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, Config):
                    return argument
    raise ConfigError(
        f"{env.__name__} does not name its config class",
        hint=f"write `class {env.__name__}(ew.GraphEnv[MyConfig])`",
    )


def _beside(env: type, name: str) -> Any:
    """Return what stands under a name in a class, or in its module."""
    found = vars(env).get(name, getattr(sys.modules.get(env.__module__), name, None))
    return found.__func__ if isinstance(found, staticmethod) else found
