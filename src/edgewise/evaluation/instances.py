"""Fixed sets of instances, made once from a seed, on which any policy can be evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from tensordict import TensorDictBase

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.run import AnyRun
from edgewise.config.seeds import derive_seed
from edgewise.envs.base import GraphEnv
from edgewise.envs.graphs_config import with_split
from edgewise.envs.policy import Policy, PortablePolicy, acting_in
from edgewise.evaluation.episodes import Progress
from edgewise.evaluation.evaluate import MAX_STEPS, evaluate
from edgewise.evaluation.instructive import candidates, choose_episodes
from edgewise.evaluation.intervention import with_intervention
from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.stages import StageEpisodes, with_stage_metrics
from edgewise.plugins import Environment

ConfigT = TypeVar("ConfigT", bound=Config)


@dataclass(frozen=True)
class Instances:
    """A fixed set of instances.

    Args:
        env: as many worlds as there are instances.
        entry: the declaration of the environment.
        seed: of the instances.
        settings: how they differ from the run's own environment.
        deterministic: whether policies act by their mode.
        algorithm: config of the run whose policy is evaluated; it may ask for interventions by a baseline.
        stages: of the evaluation, in the order of their instances; empty where it has none.
        start: initial states `[num_envs]`; what the seed gives if not given.
        decode: how several episodes of each instance are played; None for one episode.
        progress: called every few steps of an evaluation; see `evaluate`.
    """

    env: GraphEnv[Any]
    entry: Environment
    seed: int
    settings: Mapping[str, Any]
    deterministic: bool = True
    algorithm: Config | None = None
    stages: tuple[StageEpisodes, ...] = ()
    start: TensorDictBase | None = None
    decode: Decoding | None = None
    progress: Progress | None = None

    @classmethod
    def of(cls, config: AnyRun, *, entry: Environment, episodes: int | None = None) -> Instances:
        """Build the instances that the config of a run asks for, or `episodes` of them in each stage."""
        chosen = config.evaluation
        if chosen.stages:
            return replace(cls._of_stages(config, entry=entry, episodes=episodes), algorithm=config.algorithm)
        made = cls.make(
            entry,
            config.env,
            episodes=episodes or chosen.episodes,
            seed=chosen.seed,
            settings=chosen.settings,
            device=config.device,
        )
        return replace(made, algorithm=config.algorithm)

    @classmethod
    def make(
        cls,
        entry: Environment,
        config: Config,
        *,
        episodes: int,
        seed: int,
        settings: Mapping[str, Any],
        device: str = "cpu",
    ) -> Instances:
        """Build instances of an environment with some fields of its config changed."""
        settings = with_split(config, settings)
        worlds = entry.load("env")(changed(config, settings), num_envs=episodes, seed=seed, device=device)
        return cls(env=worlds, entry=entry, seed=seed, settings=dict(settings))

    @classmethod
    def _of_stages(cls, config: AnyRun, *, entry: Environment, episodes: int | None) -> Instances:
        """Build all stages of a run's evaluation as one batch, each stage from its own seed.

        The settings of a stage are applied as those of a curriculum are, so that they are part of the state.
        """
        chosen = config.evaluation
        stages = tuple(
            StageEpisodes(stage.name, episodes or stage.episodes, stage.settings) for stage in chosen.stages
        )

        def worlds(count: int, seed: int) -> Instances:
            return cls.make(
                entry,
                config.env,
                episodes=count,
                seed=seed,
                settings=chosen.settings,
                device=config.device,
            )

        parts = []
        for index, stage in enumerate(stages):
            env = worlds(stage.episodes, derive_seed(chosen.seed, f"{index}/{stage.name}")).env
            apply_stage(env, stage.settings, where=f"evaluation.stages.{index}.settings (stage {stage.name})")
            parts.append(env.reset()["state"])
        made = worlds(sum(stage.episodes for stage in stages), chosen.seed)
        return replace(made, stages=stages, start=torch.cat(parts))

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Evaluate a policy, and record `record` instructive episodes out of the first few."""
        with acting_in(policy, self.env):
            result = evaluate(
                self.env,
                self._with_intervention(policy),
                episodes=self.env.num_envs,
                seed=self.seed,
                deterministic=self.deterministic,
                record=self._candidates(record),
                start=self.start,
                decode=self.decode,
                progress=self.progress,
            )
        result = replace(_with_instructive(result, record), settings=dict(self.settings))
        return with_stage_metrics(result, self.stages) if self.stages else result

    def _candidates(self, wanted: int) -> int:
        """Return how many episodes to record, by the memory that the states of one take."""
        leaves = self.env.full_observation_spec["state"].values(include_nested=True, leaves_only=True)
        total = sum(leaf.shape.numel() * leaf.dtype.itemsize for leaf in leaves)
        steps = getattr(self.env.config, "max_steps", None) or MAX_STEPS
        return candidates(
            wanted,
            episodes=self.env.num_envs,
            bytes_per_step=total // self.env.num_envs,
            steps=steps,
        )

    def baselines(self, names: tuple[str, ...]) -> dict[str, Policy]:
        """Build the environment's baselines of these names, `all` or `quick` ones, for these instances."""
        known = self.entry.load_baselines()
        if names in (("all",), ("quick",)):
            left_out = self.entry.slow_baselines if names == ("quick",) else ()
            names = tuple(name for name in sorted(known) if name not in left_out)
        unknown = sorted({name for name in names if name not in known})
        if unknown:
            raise ConfigError(
                f"{self.env.name} has no baseline {', '.join(unknown)}",
                hint=f"it has {', '.join(known.names())}",
            )
        return {name: known[name](self.env) for name in names}

    def _with_intervention(self, policy: Policy) -> Policy:
        """Add the interventions of the run to a trained policy; baselines act alone."""
        if self.algorithm is None or not isinstance(policy, PortablePolicy):
            return policy
        return with_intervention(policy, self.env, algorithm=self.algorithm, entry=self.entry)


def apply_stage(env: GraphEnv[Any], settings: Mapping[str, Any], *, where: str) -> None:
    """Apply settings to worlds from their next reset on; an error names `where` they come from."""
    try:
        env.apply_stage(**settings)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from error


def changed(config: ConfigT, settings: Mapping[str, Any]) -> ConfigT:
    """Return a config with some fields changed; a ConfigError names every one that cannot be."""
    return resolve(type(config), [Layer("the run", config.to_plain()), Layer("settings", dict(settings))])


def _with_instructive(found: Evaluation, count: int) -> Evaluation:
    """Keep `count` instructive ones of the recorded episodes."""
    recorded = len(found.recordings)
    if recorded == 0:
        return found
    success = None if found.success is None else found.success[:recorded]
    chosen = choose_episodes(found.lengths[:recorded], success, count=count)
    return replace(
        found,
        recordings=tuple(found.recordings[index] for index in chosen),
        recorded_steps=tuple(found.recorded_steps[index] for index in chosen),
    )
