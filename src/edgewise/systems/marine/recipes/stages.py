"""Settings shared by the marine recipes: worlds of all stages in one batch, evaluation and schedules."""

from __future__ import annotations

from typing import Literal, cast

from edgewise.algorithms.off_policy_config import DistributionalConfig, OffPolicyConfig
from edgewise.config.run import (
    AnyRun,
    CheckpointConfig,
    EvaluationConfig,
    EvaluationStage,
    RunConfig,
    TrainingConfig,
)
from edgewise.config.schedules import Linear, Schedule
from edgewise.experiments.recipe import Recipe
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.marine.models.config import MarineEgoConfig

STAGES = ((3, 0, 30.0), (4, 0, 35.0), (5, 0, 40.0), (5, 2, 40.0), (5, 3, 40.0), (5, 4, 40.0))
"""Robots, obstacles and minimum distance from start to goal, from the easiest to the hardest."""
TRAINING_STEPS = 150
"""Steps of an episode in training. With many more, most worlds wait for one last boat."""
EVALUATION_STEPS = 300
"""Steps of an episode in evaluation."""
EVALUATION_SEED = 253


def marine_recipe(
    algorithm: str,
    config: OffPolicyConfig,
    *,
    actions: Literal["continuous", "discrete"],
    summary: str,
    total_frames: int = 400_000,
    exploring: float = 0.25,
    evaluations: int = 2,
    worlds: int = 200,
) -> Recipe:
    """Build the recipe `marine-ALGORITHM`: all stages mixed in training, each evaluated on its own.

    Args:
        algorithm: name of the algorithm.
        config: settings of the algorithm.
        actions: continuous or discrete actions.
        summary: one line for `edgewise recipes`.
        total_frames: length of training. After fewer frames, agents with continuous actions or quantiles
            may still collide with other boats or circle their goals.
        exploring: share of the run in which epsilon decays.
        evaluations: number of evaluations after the one of the untrained agent; all of them together take
            less than a tenth of the run.
        worlds: number of worlds of each stage in an evaluation.
    """
    name = f"marine-{algorithm}"
    schema = cast(type[AnyRun], RunConfig.__class_getitem__((MarineConfig, MarineEgoConfig, type(config))))
    run = schema(
        recipe=name,
        env_name="marine",
        algorithm_name=algorithm,
        name=name,
        env=MarineConfig(
            num_robots=(3, 5),
            num_obstacles=(0, 4),
            num_cores=0,
            min_start_goal_dis=(30.0, 40.0),
            actions=actions,
            max_steps=TRAINING_STEPS,
            graph_edges=False,
            max_robots=5,
            max_obstacles=4,
            max_cores=0,
        ),
        model=MarineEgoConfig(),
        algorithm=config,
        training=TrainingConfig(
            total_frames=total_frames,
            num_envs=128,
            rollout_length=8,
            schedules=schedules(config, total_frames, exploring=exploring),
        ),
        evaluation=EvaluationConfig(
            every=total_frames // evaluations,
            seed=EVALUATION_SEED,
            settings={"end_at_first_collision": True, "max_steps": EVALUATION_STEPS},
            stages=tuple(
                EvaluationStage(name=stage_name(stage), episodes=worlds, settings=stage_settings(stage))
                for stage in STAGES
            ),
            metric="success",
        ),
        checkpoint=CheckpointConfig(every=total_frames // 2),
    )
    return Recipe(name=name, summary=summary, config=run)


def schedules(config: OffPolicyConfig, total_frames: int, *, exploring: float = 0.25) -> dict[str, Schedule]:
    """Return the schedules of a run: learning rate, random actions and importance weights.

    The learning rate decays to a twentieth. Epsilon, if there is one, decays in the first part. The
    exponent of the importance weights rises to 1, if the replay buffer is prioritised. A risk-averse agent
    begins with all returns and uses its share of the worst from halfway on.
    """
    rate = config.learning_rate
    found: dict[str, Schedule] = {"learning_rate": Linear(start=rate, end=rate / 20)}
    if config.epsilon > 0:
        found["epsilon"] = Linear(start=0.6, end=0.02, frames=max(1, int(exploring * total_frames)))
    if config.prioritised:
        found["beta"] = Linear(start=config.beta, end=1.0)
    if isinstance(config, DistributionalConfig) and config.risk == "cvar":
        found["risk_alpha"] = Linear(start=1.0, end=config.risk_alpha, frames=max(1, total_frames // 2))
    return found


def stage_name(stage: tuple[int, int, float]) -> str:
    """Return the name of a stage, such as `5-robots-4-obstacles-40m`."""
    robots, obstacles, distance = stage
    return f"{robots}-robots-{obstacles}-obstacles-{distance:g}m"


def stage_settings(stage: tuple[int, int, float]) -> dict[str, int | float]:
    """Return a stage as settings of the environment."""
    robots, obstacles, distance = stage
    return {
        "num_robots": robots,
        "num_cores": 0,
        "num_obstacles": obstacles,
        "min_start_goal_dis": distance,
    }
