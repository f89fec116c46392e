"""Self-play must learn: small boards to perfection, by the exact criterion, and larger ones beyond rules."""

import pytest

from edgewise.evaluation.arena.match import play_match
from edgewise.experiments.contest import make_contest
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.exact import best_response

pytestmark = pytest.mark.learning

RULES = {7: {"shortest_way": 0.95, "most_current": 0.7}, 11: {"shortest_way": 0.97, "most_current": 0.7}}
"""Least score of `hex-selfplay` against two rules, by the side of the board; below all of its seeds."""


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


@pytest.mark.parametrize("seed", range(3))
def test_self_play_beats_two_rules_on_boards_up_to_eleven(tmp_path, seed):
    run = start(load_config("hex-selfplay", keywords={"seed": seed}), folder=tmp_path / "run")
    for size, bars in RULES.items():
        settings = {"size": size, "opening_plies": 2}
        contest = make_contest([run], games=400, opponents=[*bars], settings=settings, which="latest")
        policy = contest.players[run.name]
        found = {rule: play_match(contest.env, policy, contest.players[rule], seed=0).score for rule in bars}
        assert all(found[rule] >= bar for rule, bar in bars.items()), (size, found)
