"""All stages of the boats, with one recipe for each algorithm: worlds of all stages in one batch."""

from __future__ import annotations

from typing import Literal

from edgewise.algorithms.off_policy_config import (
    ACIQNConfig,
    DDPGConfig,
    DistributionalConfig,
    DQNConfig,
    IQNConfig,
    OffPolicyConfig,
    RainbowConfig,
    SACConfig,
)
from edgewise.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    EvaluationStage,
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
    return Recipe(
        f"marine-{algorithm}",
        summary,
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


AC_IQN = marine_recipe(
    "ac-iqn",
    ACIQNConfig(
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        target_noise=0.1,
        quantiles=4,
        target_quantiles=4,
        risk="cvar",
        risk_alpha=0.4,
    ),
    actions="continuous",
    summary="all the boats' stages with an actor and an implicit-quantile critic",
    exploring=0.6,
)
"""AC-IQN: a deterministic actor with an implicit-quantile critic steers boats by two continuous thrusts."""

IQN = marine_recipe(
    "iqn",
    IQNConfig(
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        quantiles=4,
        target_quantiles=4,
        exploring_quantiles=4,
        acting_quantiles=8,
        risk="cvar",
        risk_alpha=0.5,
    ),
    actions="discrete",
    summary="all the boats' stages with implicit quantile networks; policies can be risk-averse",
    evaluations=1,
    worlds=50,
)
"""IQN: implicit quantile networks over 25 thrust choices."""

DQN = marine_recipe(
    "dqn",
    DQNConfig(
        dueling=True,
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        # A loss that is linear from an error of 1 on learns the median of returns, and rare collisions hardly
        # change a median. Squared errors have larger gradients.
        huber_delta=20.0,
        max_grad_norm=100.0,
    ),
    actions="discrete",
    summary="all the boats' stages with double DQN over 25 thrust choices",
    total_frames=250_000,
    evaluations=1,
    worlds=50,
)
"""Double DQN over 25 thrust choices."""

RAINBOW = marine_recipe(
    "rainbow",
    RainbowConfig(v_min=-15.0, v_max=60.0, learning_rate=1e-3, updates_per_transition=0.02),
    actions="discrete",
    summary="all the boats' stages with Rainbow: categorical returns, noise, n steps, priorities",
    total_frames=150_000,
    evaluations=1,
    worlds=50,
)
"""Rainbow over 25 thrust choices: categorical returns, noisy networks, n-step returns, priorities."""

SAC = marine_recipe(
    "sac",
    SACConfig(
        n_step=5, learning_rate=1e-3, updates_per_transition=0.02, prioritised=True, max_grad_norm=100.0
    ),
    actions="continuous",
    summary="all the boats' stages with soft actor-critic and a learned temperature",
)
"""SAC: soft actor-critic with a learned temperature steers boats by two continuous thrusts."""

DDPG = marine_recipe(
    "ddpg",
    DDPGConfig(
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        target_noise=0.1,
        huber_delta=20.0,
        max_grad_norm=100.0,
    ),
    actions="continuous",
    summary="all the boats' stages with deterministic policy gradients",
    exploring=0.375,
)
"""DDPG: a deterministic policy gradient steers boats by two continuous thrusts."""
