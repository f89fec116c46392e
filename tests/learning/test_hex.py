"""Self-play must learn: the smallest board to perfection, by the exact criterion."""

import pytest

from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.experiments.measure import load_trained
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.exact import best_response

pytestmark = pytest.mark.learning


@pytest.mark.parametrize("seed", range(3))
def test_the_quick_recipe_plays_three_by_three_perfectly(tmp_path, seed):
    run = start(load_config("hex-quick", keywords={"seed": seed}), folder=tmp_path / "run")
    trained = load_trained(run, which="latest")
    found = best_response(HexEnv(trained.config.env), trained.policy, size=3)
    assert found.perfect, found
    assert int(found.wins_first.sum()) == 5


@pytest.mark.parametrize("seed", range(3))
def test_expert_iteration_plays_three_by_three_and_four_by_four_perfectly(tmp_path, seed):
    run = start(load_config("hex-expert", keywords={"seed": seed}), folder=tmp_path / "run")
    trained = load_trained(run, which="latest")
    env = HexEnv(trained.config.env)
    assert best_response(env, trained.policy, size=3).perfect
    assert best_response(env, trained.policy, size=4).perfect
