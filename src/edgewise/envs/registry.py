"""Every environment by name: where its parts are and what it is about, imported when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.settings import from_keywords

if TYPE_CHECKING:
    import torch
    from tensordict import TensorDict

    from edgewise.envs.base import GraphEnv

    Policy = Callable[[TensorDict], TensorDict]


@dataclass(frozen=True)
class EnvEntry:
    """Where an environment's parts are, as `module:name` relative to `edgewise.envs`, and what it is about.

    Attributes:
        config: its settings; importing them does not import torch.
        env: the environment.
        summary: one sentence for lists.
        simulation: a function that runs its hand-written rules on one network file, with all they can decide
            and not only what an action of the environment can say; None where the environment does.
        exploitability: a function that finds a player's worst cases, exactly; None where there is none.
        oracle: a function that solves small instances exactly; None where there is none.
    """

    config: str
    env: str
    summary: str
    simulation: str | None = None
    exploitability: str | None = None
    oracle: str | None = None

    def config_class(self) -> type[Config]:
        """The class of its settings."""
        return _resolve(self.config)

    def env_class(self) -> type[GraphEnv[Any]]:
        """The environment's class."""
        return _resolve(self.env)

    def baselines(self) -> Mapping[str, Callable[[GraphEnv[Any]], Policy]]:
        """Hand-written policies by name, each a function from the environment to a policy."""
        return _resolve(f"{self._folder}.baselines:BASELINES")

    def replay(self) -> Callable[[TensorDict], dict[str, Any]]:
        """What turns the states of one episode into a replay."""
        return _resolve(f"{self._folder}.render:replay")

    def simulate(self) -> Callable[..., Any] | None:
        """The function of `simulation`: `(policy, file, *, slots, seeds, seed)` to a dataclass of figures."""
        return None if self.simulation is None else _resolve(self.simulation)

    def solve(self) -> Callable[..., Any] | None:
        """The function of `oracle`: `(graph, rates, *, policies, cap, ...)` to a list of exact figures."""
        return None if self.oracle is None else _resolve(self.oracle)

    def worst_cases(self) -> Callable[..., dict[str, float]] | None:
        """The function of `exploitability`: from a function of settings that gives environment and policy."""
        return None if self.exploitability is None else _resolve(self.exploitability)

    @property
    def _folder(self) -> str:
        return self.env.partition(":")[0].rpartition(".")[0]


ENVS: Mapping[str, EnvEntry] = {
    "graphwalk": EnvEntry(
        config="graphwalk.config:GraphwalkConfig",
        env="graphwalk.env:GraphwalkEnv",
        summary="walk to the marked node of a random graph",
    ),
    "queueing": EnvEntry(
        config="queueing.config:QueueingConfig",
        env="queueing.env:QueueingEnv",
        summary="activate nodes that do not conflict so that few packets wait",
        oracle="queueing.exact:exact_figures",
    ),
    "multihop": EnvEntry(
        config="multihop.config:MultihopConfig",
        env="multihop.env:MultihopEnv",
        summary="choose what each link of a network carries so that few packets wait",
        simulation="multihop.simulate:baseline_run",
    ),
    "swarm": EnvEntry(
        config="swarm.config:SwarmConfig",
        env="swarm.env:SwarmEnv",
        summary="steer a team of any size to its goals between obstacles",
    ),
    "marine": EnvEntry(
        config="marine.config:MarineConfig",
        env="marine.env:MarineEnv",
        summary="steer boats across a current to their goals by the rules of the sea",
    ),
    "hex": EnvEntry(
        config="hex.config:HexConfig",
        env="hex.env:HexEnv",
        summary="two players join their sides of a board of hexagons",
        exploitability="hex.exact:exploitability",
    ),
    "reasoning": EnvEntry(
        config="reasoning.config:ReasoningConfig",
        env="reasoning.env:ReasoningEnv",
        summary="prove queries of a knowledge graph from its facts and rules, step by step",
    ),
}


def entry(name: str) -> EnvEntry:
    """The registry's line for `name`, or a ConfigError that says which names there are."""
    if name not in ENVS:
        near = get_close_matches(name, ENVS, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"no environment is called {name!r}", hint=f"{guess}There are: {', '.join(sorted(ENVS))}"
        )
    return ENVS[name]


def make_config(name: str, **fields: Any) -> Config:
    """The settings of environment `name`, some changed; one ConfigError names all that cannot be so."""
    schema = entry(name).config_class()
    return resolve(schema, [from_keywords(schema, fields)])


def make_env(
    name: str, *, num_envs: int = 1, seed: int | None = 0, device: torch.device | str = "cpu", **fields: Any
) -> GraphEnv[Any]:
    """Environment `name` with `num_envs` worlds, a TorchRL EnvBase of batch size `[num_envs]`.

    Args:
        name: one of `ENVS`.
        num_envs: how many worlds step together.
        seed: the same seed gives the same worlds; None for others each time.
        device: where its tensors live.
        fields: settings of the environment, by the names in its config class.

    Example:
        >>> make_env("graphwalk", num_envs=4, num_nodes=(5, 8)).batch_size
        torch.Size([4])
    """
    config = make_config(name, **fields)
    return entry(name).env_class()(config, num_envs=num_envs, seed=seed, device=device)


def _resolve(address: str) -> Any:
    module, _, attribute = address.partition(":")
    return getattr(import_module(f"edgewise.envs.{module}"), attribute)
