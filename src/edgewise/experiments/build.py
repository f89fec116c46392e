"""The composition root: builds environment, algorithm, collector and evaluator from the config of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from tensordict.nn import TensorDictModuleBase

from edgewise.algorithms.algorithm import Algorithm
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.algorithms.self_play_settings import SelfPlaySettings
from edgewise.algorithms.setup import Setup
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.config.seeds import derive_seed
from edgewise.data.collector import Collector
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv
from edgewise.envs.contract import check_first_step
from edgewise.envs.policy import Policy
from edgewise.evaluation.arena.evaluator import Matches
from edgewise.evaluation.instances import Instances, apply_stage
from edgewise.evaluation.intervention import with_intervention
from edgewise.experiments.compilation import compile_models
from edgewise.experiments.load import from_plain
from edgewise.experiments.memory_check import limited
from edgewise.experiments.replays import replay_function
from edgewise.plugins import Environment, algorithm, environment, load
from edgewise.scale.devices import check_device
from edgewise.scale.processes.group import ALONE, Group
from edgewise.training.parts import Evaluate, Parts
from edgewise.training.self_play.rollout import SelfPlayRollout


@dataclass(frozen=True)
class Builder:
    """Builds the parts of a run, each when it is first asked for.

    Args:
        config: of the run.
        num_envs: replaces the config's number of worlds.
        rollout_length: replaces the config's number of steps in a batch.
        episodes: replaces the config's number of evaluation episodes.
        kept: numbers in the checkpoint that is loaded afterwards, which limits the size of the model.
        group: the processes that train together. Each builds its share of the worlds, with random numbers of
            its own, and the same model.

    Raises:
        ConfigError: the device is absent, a stage changes what cannot change, or a baseline does not exist.

    Example:
        >>> from edgewise.experiments.load import load_config
        >>> Builder(load_config("graphwalk-ppo"), num_envs=2, rollout_length=4).collector.collect().batch_size
        torch.Size([2, 4])
    """

    config: AnyRun
    num_envs: int | None = None
    rollout_length: int | None = None
    episodes: int | None = None
    kept: int | None = None
    group: Group = ALONE

    def __post_init__(self) -> None:
        check_device(self.config.device)

    @property
    def entry(self) -> Environment:
        """The declaration of the environment."""
        return environment(self.config.env_name)

    @cached_property
    def env(self) -> GraphEnv[Any]:
        """The training environment, with every stage of the curriculum checked against it."""
        config, num_envs = self.config, self.num_envs or self.config.training.num_envs
        env: GraphEnv[Any] = self.entry.load("env")(
            config.env, num_envs=self.group.part(num_envs), seed=self._seed("env"), device=config.device
        )
        for index, stage in enumerate(config.training.curriculum):
            apply_stage(env, stage.env, where=f"training.curriculum.{index}.env (stage {stage.name})")
        env.apply_stage()
        if not type(env).__module__.startswith("edgewise."):
            check_first_step(env)
        return env

    @cached_property
    def algorithm(self) -> Algorithm:
        """The algorithm with a freshly initialised model."""
        config, env = self.config, self.env
        torch.manual_seed(derive_seed(config.seed, "model"))
        setup = Setup(
            env=env,
            config=config.algorithm,
            model=config.model,
            make_model=self._make_model,
            make_baseline=self.make_baseline,
            seed=self._seed("algorithm"),
            device=config.device,
            group=self.group,
        )
        make = algorithm(config.algorithm_name).load("algorithm").from_setup
        with limited(config, kept=self.kept):
            made: Algorithm = make(setup)
        if made.group is not self.group:
            raise ConfigError(
                f"processes: {config.algorithm_name} cannot learn in {self.group.size} processes, since it "
                "does not average over them",
                hint="train in one process; an algorithm that keeps `setup.group` as `group` can use several",
            )
        compile_models(made, config, num_nodes=env.graph.num_nodes)
        return made

    @cached_property
    def collector(self) -> Collector:
        """What steps the training environment with the algorithm's behaviour policy."""
        config, algorithm = self.config, self.algorithm
        length = self.rollout_length or config.training.rollout_length
        if isinstance(config.algorithm, SelfPlaySettings):
            return self._self_play(config.algorithm, length)
        own = algorithm.make_collector(self.env, rollout_length=length)
        if own is not None:
            return own
        behaviour = with_intervention(
            algorithm.behaviour, self.env, algorithm=config.algorithm, entry=self.entry
        )
        return Rollout(self.env, behaviour, rollout_length=length, keep_state=algorithm.needs_state)

    @cached_property
    def instances(self) -> Instances:
        """The fixed instances of the config's evaluation."""
        return Instances.of(self.config, entry=self.entry, episodes=self.episodes)

    @cached_property
    def baselines(self) -> dict[str, Policy]:
        """The baselines that the config evaluates, built for the fixed instances."""
        return self.instances.baselines(self.config.evaluation.baselines)

    @cached_property
    def evaluator(self) -> Evaluate:
        """What plays a policy on the fixed instances; by matches against the baselines in self-play."""
        chosen, is_game = self.config.algorithm, self.env.observation_spec.get("player", None) is not None
        if not isinstance(chosen, SelfPlaySettings) and not (
            is_game and isinstance(chosen, ExpertIterationConfig)
        ):
            return self.instances
        if self.baselines and self.instances.env.num_envs % 2:
            raise ConfigError(
                f"evaluation.episodes: got {self.instances.env.num_envs}, expected an even number: "
                "every opening is played from both sides"
            )
        return Matches(self.instances, self.baselines)

    def parts(self) -> Parts:
        """Everything that the trainer needs."""
        return Parts(
            env=self.env,
            algorithm=self.algorithm,
            rollout=self.collector,
            evaluate=self.evaluator,
            baselines=self.baselines,
            replay=replay_function(self.algorithm.policy, self.instances.env, entry=self.entry),
        )

    def make_baseline(self, name: str, *, field: str) -> Policy:
        """Build a baseline for the training environment; `field` is the setting that names it."""
        known = self.entry.load_baselines()
        if name not in known:
            raise ConfigError(
                f"{field}: got {name}, which is no baseline of {self.env.name}",
                hint=f"it has {', '.join(known.names())}",
            )
        return known[name](self.env)

    def _seed(self, name: str) -> int:
        """Return the seed of one user of randomness, different in each process."""
        rank = self.group.rank
        return derive_seed(self.config.seed, f"{name} of rank {rank}" if rank else name)

    def _make_model(self) -> TensorDictModuleBase:
        """Build the model with the function that the class of its config names."""
        return load(self.config.model.builder)(self.env, self.config)

    def _self_play(self, chosen: SelfPlaySettings, length: int) -> SelfPlayRollout:
        return SelfPlayRollout(
            self.env,
            self.algorithm.policy,  # type: ignore[arg-type]
            behaviour=self.algorithm.behaviour,
            rollout_length=length,
            share=chosen.pool_share,
            opponents=chosen.opponents,
            pool_size=chosen.pool_size,
            snapshot_every=chosen.snapshot_every,
            matchmaking=chosen.matchmaking,
            baselines={
                name: self.make_baseline(name, field="algorithm.baselines") for name in chosen.baselines
            },
            baseline_share=chosen.baseline_share,
            gate=chosen.gate,
            gate_games=chosen.gate_games,
            seed=derive_seed(self.config.seed, "self-play"),
            group=self.group,
        )


def worker_builder(values: Mapping[str, Any], *, num_envs: int) -> Builder:
    """Return the builder of a worker's parts: one process on a CPU, uncompiled.

    Args:
        values: config of the run, as plain values.
        num_envs: worlds of the worker.
    """
    config = from_plain(values)
    training = config.training.model_copy(update={"compile": False})
    alone = {"device": "cpu", "workers": 0, "ray": None, "processes": 1, "training": training}
    return Builder(config.model_copy(update=alone), num_envs=num_envs)
