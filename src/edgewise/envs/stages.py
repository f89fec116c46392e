"""Check a stage before worlds follow it: it must fit into the environment's shapes, and have an effect."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.config.model import Config
from edgewise.envs.random_rollout import SEED, same_rollouts
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

WORLDS = 4
SIZES = ("num_agents", "num_groups", "max_choices")
"""Fields of an action layout that are capacities: a stage may use less of them."""


def check_stage_fits(env: Any, stage: Config) -> None:
    """Raise ConfigError if worlds of `stage` need other shapes than `env` has, or do not change at all.

    The stage is tried in small copies of the environment. `setup` runs only once, so a setting that `setup`
    alone reads cannot change between stages.

    Args:
        env: a GraphEnv.
        stage: its settings with those of the stage.
    """
    names = ", ".join(changed_settings(env.built_with, stage))
    if not names:
        return
    try:
        new = type(env)(stage, num_envs=WORLDS, seed=SEED, device=env.device)
        _check_shapes(env, new, names)
        _check_worlds(with_stage(env, stage), names)
        without_effect = has_no_effect(env, stage)
    except EdgewiseError:
        raise
    except Exception as error:
        shown = ", ".join(
            f"{name}={getattr(stage, name)}" for name in changed_settings(env.built_with, stage)
        )
        raise ConfigError(
            f"{type(env).__name__} cannot make worlds with {shown}: {type(error).__name__}: {error}"
        ) from error
    if without_effect:
        raise ConfigError(
            f"{type(env).__name__} cannot change {names} from stage to stage: worlds stay the same, since "
            "only `setup` uses it, which runs once",
            hint="read it as `self.config` in `spawn`, `advance` or `observe`, or leave it out of the stages",
        )


def has_no_effect(env: Any, stage: Config) -> bool:
    """Return whether `stage` changes nothing in `env`, although a new environment with it is different."""
    before, staged = (with_stage(env, settings) for settings in (env.built_with, stage))
    if not same_rollouts(staged, before):
        return False
    return not _is_same(env, type(env)(stage, num_envs=WORLDS, seed=SEED, device=env.device), before)


def changed_settings(config: Config, stage: Config) -> list[str]:
    """Return the names of the settings in which two configs of one class differ."""
    return [name for name in type(config).model_fields if getattr(config, name) != getattr(stage, name)]


def with_stage(env: Any, stage: Config) -> Any:
    """Return a small copy of an environment, built as it was, whose worlds follow `stage`."""
    copy = type(env)(env.built_with, num_envs=WORLDS, seed=SEED, device=env.device)
    copy.follow(stage)
    return copy


def _is_same(env: Any, new: Any, before: Any) -> bool:
    """Return whether a new environment has the shapes and the rollout of the one before."""
    return new.graph == env.graph and new.actions == env.actions and same_rollouts(new, before)


def _check_shapes(env: Any, new: Any, names: str) -> None:
    larger = [*_larger_graph(env.graph, new.graph), *_larger_actions(env.actions, new.actions)]
    if larger:
        raise ConfigError(
            f"{type(env).__name__} cannot change {names} like this from stage to stage: {larger[0]}",
            hint="build the environment with the largest sizes of all stages",
        )


def _larger_graph(own: GraphSpec, new: GraphSpec) -> list[str]:
    """Return what does not fit, in words."""
    found = []
    if new.num_nodes > own.num_nodes:
        found.append(f"it needs {new.num_nodes} node slots, and there are {own.num_nodes}")
    for name in ("node_features", "position_dim", "node_types", "graph_features"):
        if getattr(own, name) != getattr(new, name):
            found.append(f"it needs {name}={getattr(new, name)}, and the graphs have {getattr(own, name)}")
    if isinstance(own.edges, Explicit) and isinstance(new.edges, Explicit):
        if new.edges.num_edges > own.edges.num_edges:
            found.append(f"it needs {new.edges.num_edges} edge slots, and there are {own.edges.num_edges}")
        if new.edges.num_features != own.edges.num_features:
            found.append("it needs other edge features")
    elif new.edges != own.edges:
        found.append("it needs other edges")
    return found


def _larger_actions(own: ActionLayout, new: ActionLayout) -> list[str]:
    if type(own) is not type(new) or not is_dataclass(own):
        return [] if own == new else ["it needs another action layout"]
    for field in fields(own):
        mine, other = getattr(own, field.name), getattr(new, field.name)
        if (other > mine) if field.name in SIZES else (other != mine):
            return [f"it needs actions with {field.name}={other}, and they have {mine}"]
    return []


def _check_worlds(staged: Any, names: str) -> None:
    """Raise ConfigError if new worlds of a stage have other shapes than the environment's specs."""
    root, spec = staged.reset(), staged.observation_spec
    for key in spec.keys(include_nested=True, leaves_only=True):
        value = root.get(key, None)
        if value is None or value.shape != spec[key].shape:
            name = key if isinstance(key, str) else ".".join(key)
            got = "missing" if value is None else f"{list(value.shape[1:])} in each world"
            raise ConfigError(
                f"{type(staged).__name__} cannot change {names} like this from stage to stage: `{name}` "
                f"would be {got}, and it is {list(spec[key].shape[1:])}",
                hint="take sizes of tensors from `self.graph`, not from `self.config`",
            )
