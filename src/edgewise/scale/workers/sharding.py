"""Give the parts of a run workers that collect and evaluate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgewise import plugins
from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.data.episodes import EpisodeRollout
from edgewise.scale.division import share_of_worker
from edgewise.scale.processes.group import ALONE, Group
from edgewise.scale.workers.collector import RemoteEvaluator, ShardedCollector
from edgewise.scale.workers.local import Workers
from edgewise.scale.workers.pool import RayWorkers
from edgewise.scale.workers.worker import Blueprint
from edgewise.training.parts import Parts


def with_workers(
    parts: Parts, config: AnyRun, *, group: Group = ALONE, workers: Workers | None = None
) -> Parts:
    """Return the parts of a run with workers in place of the collector and the evaluator.

    Args:
        parts: built from the config.
        config: of the run; it asks for at least one worker for each process.
        group: the processes that learn together; each has workers of its own.
        workers: those to use; the config's own on a Ray cluster if not given.

    Raises:
        ConfigError: the algorithm cannot collect with workers, or there is no cluster.
    """
    algorithm = parts.algorithm
    refuse_algorithm(algorithm, parts.env, config)
    count = config.workers // group.size
    if workers is None:
        if config.cluster.address is not None:
            plugins.require_cluster(config.cluster.address)
        blueprint = Blueprint.of(config, num_envs=share_of_worker(config))
        workers = RayWorkers(blueprint, count=count, settings=config.cluster)
    return replace(
        parts,
        rollout=ShardedCollector(
            workers,
            algorithm,
            parts.env,  # type: ignore[arg-type]
            shares=count,
            first_share=group.rank * count,
            max_staleness=config.cluster.max_staleness,
        ),
        evaluate=RemoteEvaluator(workers, algorithm, parts.evaluate),
    )


def refuse_algorithm(algorithm: Algorithm, env: Any, config: AnyRun) -> None:
    """Raise ConfigError if an algorithm cannot learn from what workers collect in an environment."""
    name = config.algorithm_name
    own = algorithm.make_collector(env, rollout_length=1)
    if own is not None and not (isinstance(own, EpisodeRollout) and own.baseline is None):
        raise ConfigError(
            f"workers: {name} collects {config.env_name} in a way of its own, which workers cannot",
            hint="use --processes, which every algorithm can",
        )
    starts, worlds = getattr(config.algorithm, "starts", 1), share_of_worker(config)
    if starts > worlds:
        raise ConfigError(
            f"algorithm.starts: one worker plays the {starts} episodes of an instance, and each of "
            f"{config.workers} workers has {worlds} worlds",
            hint=f"use num_envs {starts * config.workers} or more, or fewer workers",
        )
    if config.cluster.max_staleness and not algorithm.takes_older_steps:
        raise ConfigError(
            f"ray.max_staleness: {name} cannot learn from steps that older weights made, with this model and "
            "these settings",
            hint="leave it out; PPO can without memory and for discounted rewards of one player, and so can "
            "algorithms with a replay buffer",
        )
