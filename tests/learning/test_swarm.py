"""Three agents must learn to reach their goals, and larger teams must do so with the same weights."""

import pytest
from tests.systems.swarm.worlds import swarm

from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.build import Builder
from edgewise.experiments.evaluate import evaluate_ablations, evaluate_run
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.swarm.recipes import ddpg, mappo, sac
from edgewise.training.iteration import apply_schedules

pytestmark = pytest.mark.learning

BARS = {3: (0.98, 60.0), 7: (0.98, 61.0), 10: (0.97, 58.0), 15: (0.95, 53.0)}
"""Agents: least share of episodes in which all arrive, and least reward per agent."""


def trained(recipe, seed):
    """The recipe's policy after all its frames, in one to three minutes of one core."""
    config = load_config(recipe.config, keywords={"seed": seed})
    parts, total = Builder(config).parts(), config.training.total_frames
    for frames in range(0, total, parts.rollout.frames):
        apply_schedules(parts.algorithm, config.training.schedules, frames=frames, total_frames=total)
        parts.algorithm.learn(parts.rollout.collect())
    return parts.algorithm.policy


@pytest.mark.parametrize("seed", range(3))
def test_three_agents_learn_and_their_weights_steer_fifteen(seed):
    policy = trained(mappo.RECIPE, seed)
    for agents, (success, reward) in BARS.items():
        env = swarm(num_envs=100, num_agents=agents, reward="individual")
        metrics = evaluate(env, policy, episodes=100, seed=1_000_003).metrics
        assert metrics["success"].mean() >= success, agents
        assert metrics["reward"].mean() >= reward, agents
        if agents == 3:
            assert metrics["time"].mean() <= 0.42


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("recipe", [sac.RECIPE, ddpg.RECIPE], ids=lambda recipe: recipe.name)
def test_continuous_actions_are_learnt_off_policy(recipe, seed):
    policy = trained(recipe, seed)
    for agents in (3, 7):
        env = swarm(num_envs=500, num_agents=agents, continuous=True, one_way=True, reward="individual")
        metrics = evaluate(env, policy, episodes=500, seed=1_000_003).metrics
        assert metrics["success"].mean() >= 0.98, agents


CROWD = {"num_obstacles": (0, 10), "world_size": 2.0, "collision_cost": 5.0}
CROWD_BARS = {3: 0.995, 7: 0.99, 15: 0.98, 50: 0.95}
"""Agents of a crowd: least share of episodes in which all arrive."""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """The run of `swarm-mappo-dense`, in some minutes of one core."""
    return start(load_config("swarm-mappo-dense"), folder=tmp_path_factory.mktemp("crowd") / "run")


@pytest.mark.parametrize(("agents", "success"), CROWD_BARS.items())
def test_agents_of_a_crowd_arrive_and_touch_half_as_often_as_those_that_drive_straight(
    crowd, agents, success
):
    team, straight = evaluate_run(
        crowd,
        EvaluationRequest(
            settings={**CROWD, "num_agents": agents},
            episodes=200,
            seed=1_000_003,
            checkpoint="latest",
            baselines=("straight",),
        ),
    )
    assert team.metrics["success"].mean() >= success
    assert team.metrics["collisions"].mean() <= 0.5 * straight.metrics["collisions"].mean()


@pytest.mark.parametrize("agents", [3, 7, 15, 50])
def test_agents_of_a_crowd_touch_half_as_often_as_without_edges(crowd, agents):
    settings = {**CROWD, "num_agents": agents}
    ((_, found),) = evaluate_ablations(
        crowd,
        ["edges"],
        EvaluationRequest(settings=settings, episodes=200, seed=1_000_003, checkpoint="latest"),
    )
    team = evaluate_run(
        crowd, EvaluationRequest(settings=settings, episodes=200, seed=1_000_003, checkpoint="latest")
    )[0]
    assert team.metrics["collisions"].mean() <= 0.5 * found.result.metrics["collisions"].mean()


@pytest.mark.parametrize("seed", range(3))
def test_double_integrators_learn_to_be_safe(seed, tmp_path):
    """Eight and sixteen agents are at least as often safe and finished as by the planner, larger teams more
    often than by the regulator, which avoids nobody."""
    run = start(load_config("swarm-integrator", keywords={"seed": seed}), folder=tmp_path / "run")
    for agents, rule in ((8, "cautious"), (16, "cautious"), (32, "straight"), (64, "straight")):
        settings = {
            "num_agents": agents,
            "world_size": 4.0,
            "max_steps": 256,
            "goal_width": 0.0,
            "collision_margin": 0.0,
        }
        team, planner = evaluate_run(
            run, EvaluationRequest(settings=settings, episodes=40, seed=0, baselines=(rule,))
        )
        assert team.metrics["safe_finish"].mean() >= planner.metrics["safe_finish"].mean(), agents


PLACES = {"goal_reward": 5.0, "goal_width": 0.0, "collision_cost": 5.0, "collision_margin": 0.0}
PLACES_BARS = {"coverage": 0.9, "formation": 0.98, "line": 0.98}
"""Tasks: least share of episodes in which all agents are at their places at once."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("task", "success"), PLACES_BARS.items())
def test_teams_take_their_places_and_need_their_edges_for_it(task, success, seed, tmp_path):
    """Two minutes of one core each."""
    config = load_config("swarm-teams", keywords={"task": task, "seed": seed})
    run = start(config, folder=tmp_path / "run")
    ((team, blind),) = evaluate_ablations(
        run, ["edges"], EvaluationRequest(settings=PLACES, episodes=200, seed=11)
    )
    assert team.metrics["success"].mean() >= success
    assert blind.result.metrics["success"].mean() <= 0.1
