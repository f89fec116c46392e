"""Self-play must learn Hive: the recipe beats random play almost always and its one-ply opponent clearly."""

import pytest

from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.hive.baselines import BASELINES

pytestmark = pytest.mark.learning


@pytest.mark.parametrize("seed", range(3))
def test_the_quick_recipe_wins_against_both_baselines(tmp_path, seed):
    run = start(load_config("hive-quick", keywords={"seed": seed}), folder=tmp_path / "run")
    trained = load_trained(run, which="latest")
    settings = {**trained.config.env.to_plain(), **trained.config.evaluation.settings}
    env = make_env("hive", num_envs=200, seed=0, **settings)
    score = {
        name: play_match(env, trained.policy, make(env), seed=1).score for name, make in BASELINES.items()
    }
    assert score["random"] > 0.95, score
    assert score["greedy"] > 0.7, score
