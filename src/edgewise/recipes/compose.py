"""Puts the parts of a run together from its config: where environment, model and algorithm meet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from tensordict import TensorDictBase

from edgewise.algorithms.registry import algorithm_class
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv
from edgewise.envs.registry import EnvEntry, entry
from edgewise.evaluation.evaluate import Policy, evaluate
from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.stages import Kind, with_kinds
from edgewise.models.actor_critic import Actor, make_actor_critic
from edgewise.recipes.oversight import overseen
from edgewise.recipes.pictures import drawn_for
from edgewise.recipes.recipe import AnyRun
from edgewise.recipes.registry import recipe
from edgewise.training.parts import Parts

ConfigT = TypeVar("ConfigT", bound=Config)


def build(config: AnyRun) -> Parts:
    """The parts of a run that collects from one environment with one actor-critic.

    Raises:
        ConfigError: the device is absent, a stage changes what cannot change, or a baseline does not exist.
    """
    check_device(config.device)
    made_from = recipe(config.recipe)
    env = make_worlds(config)
    torch.manual_seed(stream(config.seed, "model"))
    algorithm = algorithm_class(made_from.algorithm)(
        make_actor_critic(env.graph, env.actions, config.model),
        config.algorithm,
        seed=stream(config.seed, "algorithm"),
        device=config.device,
        compile=config.training.compile,
    )
    instances, line = Instances.of(config), entry(made_from.env)
    acting = overseen(algorithm.policy, env, algorithm=config.algorithm, line=line)
    return Parts(
        env=env,
        algorithm=algorithm,
        rollout=Rollout(env, acting, steps=config.training.steps),
        evaluate=instances,
        baselines=instances.baselines(config.evaluation.baselines),
        replay=drawn_for(algorithm.policy, instances.env, line=line),
    )


def make_worlds(config: AnyRun) -> GraphEnv[Any]:
    """The training worlds, every stage of the curriculum checked against them."""
    if config.training.num_envs == "auto":
        raise ValueError("num_envs is still auto: choose it before building")
    line = entry(recipe(config.recipe).env)
    env = line.env_class()(
        config.env, num_envs=config.training.num_envs, seed=stream(config.seed, "env"), device=config.device
    )
    for index, stage in enumerate(config.training.curriculum):
        _lead(env, stage.env, where=f"training.curriculum.{index}.env (stage {stage.name})")
    env.apply_stage()
    return env


def _lead(env: GraphEnv[Any], settings: Mapping[str, Any], *, where: str) -> None:
    """Let worlds born from now on follow settings; what cannot change from world to world is refused."""
    try:
        env.apply_stage(**settings)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True)
class Instances:
    """A fixed set of instances, made once, on which any policy can be measured.

    Args:
        env: as many worlds as there are instances.
        line: the environment's line in the registry.
        seed: what makes the instances.
        settings: how they differ from the run's own environment.
        deterministic: whether policies act by their mode.
        algorithm: of the run whose actors are measured; it may let a baseline take over from them.
        kinds: of instances, in their order; none where all are of one kind.
        start: the states `[num_envs]` that they begin in; what the seed gives if not given.
    """

    env: GraphEnv[Any]
    line: EnvEntry
    seed: int
    settings: Mapping[str, Any]
    deterministic: bool = True
    algorithm: Config | None = None
    kinds: tuple[Kind, ...] = ()
    start: TensorDictBase | None = None

    @classmethod
    def of(cls, config: AnyRun) -> Instances:
        """The instances that a run's config asks for."""
        chosen = config.evaluation
        if chosen.stages:
            return replace(cls._of_kinds(config), algorithm=config.algorithm)
        made = cls.make(
            recipe(config.recipe).env,
            config.env,
            episodes=chosen.episodes,
            seed=chosen.seed,
            settings=chosen.settings,
            device=config.device,
        )
        return replace(made, algorithm=config.algorithm)

    @classmethod
    def make(
        cls,
        env: str,
        config: Config,
        *,
        episodes: int,
        seed: int,
        settings: Mapping[str, Any],
        device: str = "cpu",
    ) -> Instances:
        """Instances of the environment called `env`, with some fields of its config changed."""
        line = entry(env)
        worlds = line.env_class()(changed(config, settings), num_envs=episodes, seed=seed, device=device)
        return cls(env=worlds, line=line, seed=seed, settings=dict(settings))

    @classmethod
    def _of_kinds(cls, config: AnyRun) -> Instances:
        """All stages of a run's evaluation as one batch; each stage's worlds are drawn from its own seed.

        They are born as those of a curriculum's stage are, so that what they follow is in their state.
        """
        chosen, name = config.evaluation, recipe(config.recipe).env
        kinds = tuple(Kind(stage.name, stage.episodes, stage.settings) for stage in chosen.stages)

        def worlds(episodes: int, seed: int) -> Instances:
            return cls.make(
                name,
                config.env,
                episodes=episodes,
                seed=seed,
                settings=chosen.settings,
                device=config.device,
            )

        parts = []
        for index, kind in enumerate(kinds):
            env = worlds(kind.episodes, stream(chosen.seed, f"{index}/{kind.name}")).env
            _lead(env, kind.settings, where=f"evaluation.stages.{index}.settings (stage {kind.name})")
            parts.append(env.reset()["state"])
        made = worlds(sum(kind.episodes for kind in kinds), chosen.seed)
        return replace(made, kinds=kinds, start=torch.cat(parts))

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Every episode's measures, and the states of the first `record` episodes."""
        with policy.on(self.env.graph) if isinstance(policy, Actor) else nullcontext():
            result = evaluate(
                self.env,
                self._overseen(policy),
                episodes=self.env.num_envs,
                seed=self.seed,
                deterministic=self.deterministic,
                record=min(record, self.env.num_envs),
                start=self.start,
            )
        result = replace(result, settings=dict(self.settings))
        return with_kinds(result, self.kinds) if self.kinds else result

    def _overseen(self, policy: Policy) -> Policy:
        """An actor of the run as it acts there; baselines act alone."""
        if self.algorithm is None or not isinstance(policy, Actor):
            return policy
        return overseen(policy, self.env, algorithm=self.algorithm, line=self.line)

    def baselines(self, names: tuple[str, ...]) -> dict[str, Policy]:
        """The environment's hand-written policies of these names, made for these instances."""
        known = self.line.baselines()
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ConfigError(
                f"{self.env.name} has no baseline {', '.join(unknown)}",
                hint=f"it has {', '.join(sorted(known))}",
            )
        return {name: known[name](self.env) for name in names}


def changed(config: ConfigT, settings: Mapping[str, Any]) -> ConfigT:
    """A config with some fields changed; a ConfigError names every one that cannot be so."""
    return resolve(type(config), [Layer("the run", config.to_plain()), Layer("settings", dict(settings))])


def check_device(device: str) -> None:
    """Refuses a device that this machine has not."""
    kind, _, index = device.partition(":")
    present = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }.get(kind, 0)
    if not (index or "0").isdigit() or int(index or 0) >= present:
        raise ConfigError(
            f"device: got {device}, but this machine has {present} of kind {kind}", hint="use cpu"
        )


def stream(seed: int, name: str) -> int:
    """A seed of its own for each user of randomness, so that no two draw the same numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8]) >> 1
