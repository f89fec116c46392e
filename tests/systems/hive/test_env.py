"""The environment: observations, actions as moves, rewards of the mover, baselines, replay and recipe."""

import json

import pytest
import torch

from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.envs.contract import check_graph_env
from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.evaluation.replays.files import check
from edgewise.graphs.validate import validate
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import ModelConfig
from edgewise.systems.hive import dynamics, observe
from edgewise.systems.hive.baselines import greedy, random_player
from edgewise.systems.hive.recipes.quick import RECIPE
from edgewise.systems.hive.render import replay
from edgewise.training.self_play.rollout import SelfPlayRollout

SMALL = {"hand": "QAAGB", "max_steps": 60}
ALL = {"expansions": "MLP"}
THREE = {"hand": "QB", "expansions": "P"}


def roots(count=12, plies=30, **settings):
    """Roots of random games, one batch per ply."""
    env = make_env("hive", num_envs=count, seed=0, **settings)
    torch.manual_seed(0)
    root, found = env.reset(), []
    for _ in range(plies):
        found.append(root.clone())
        _, root = env.step_and_maybe_reset(env.rand_action(root))
    return env, found


@pytest.mark.parametrize("settings", [SMALL | {"opening_plies": (0, 6)}, ALL])
def test_the_contract_is_kept_by_other_hands(settings):
    check_graph_env(make_env("hive", **settings))


@pytest.mark.parametrize("settings", [SMALL, ALL])
def test_a_move_is_an_edge_from_its_tile_to_its_destination(settings):
    env, found = roots(**settings)
    for root in found:
        validate(root["graph"], env.graph)
        state, graph = root["state"], root["graph"]
        assert torch.equal(root["action_mask"].sum(-1), graph["edge_mask"].gather(1, root["choices"]).sum(-1))
        assert (graph["edge_attr"][..., observe.MOVE].gather(1, root["choices"]) == 1).all()
        for game in range(env.num_envs):
            _check_edges(state[game], graph[game], root["choices"][game], env.hand)


def _check_edges(state, graph, choices, hand):
    """Every move edge starts at its tile, and edges to one node are moves to one hex."""
    source, target = graph["edge_index"]
    player = int(state["player"])
    place = {}
    for slot in range(hand.tiles):
        node = (slot + player * hand.size) % hand.tiles if player else slot
        if state["level"][slot] >= 0:
            place[node] = (int(state["q"][slot]), int(state["r"][slot]))
    moves = state["moves"].tolist()
    targets = {}
    for edge, (slot, q, r) in zip(choices.tolist(), moves, strict=True):
        if slot < 0:
            continue
        if slot == hand.tiles:
            assert int(source[edge]) == int(target[edge]) == hand.queen
            continue
        assert int(source[edge]) == (slot + player * hand.size) % hand.tiles
        known = targets.setdefault(int(target[edge]), (q, r))
        assert known == (q, r)
        assert place.get(int(target[edge]), (q, r)) == (q, r)
    assert len(set(targets.values())) == len(targets)


def test_adjacent_nodes_are_adjacent_hexes_and_edges_go_both_ways():
    env, found = roots(**ALL)
    root = found[-1]
    adjacent = root["graph", "edge_attr"][..., observe.ADJACENT] * root["graph", "edge_mask"]
    for game in range(env.num_envs):
        pairs = root["graph", "edge_index"][game][:, adjacent[game] > 0].T.tolist()
        assert {tuple(pair) for pair in pairs} == {tuple(reversed(pair)) for pair in pairs}
        assert len(pairs) == len({tuple(pair) for pair in pairs})


def test_both_players_observe_the_same_position_alike():
    """Exchange the players' tiles and who is to move: the graph stays, apart from the first seat."""
    env, found = roots(**ALL)
    state = found[-1]["state"].clone()
    half = env.hand.size
    mirrored = state.clone()
    for name in ("q", "r", "level"):
        mirrored[name] = state[name].roll(half, 1)
    mirrored["player"] = 1 - state["player"]
    mirrored["last"] = dynamics.swap_slot(state["last"], torch.ones_like(state["player"]), env.hand.tiles)
    mirrored["moves"] = dynamics.list_moves(mirrored, env.hand, max_moves=state["moves"].shape[1])
    one, two = (observe.graph(each, dynamics.mover_board(each), env.hand) for each in (state, mirrored))
    assert (one["x"][..., 16] != two["x"][..., 16]).all()
    one["x"][..., 16] = two["x"][..., 16] = 0
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("settings", [SMALL, ALL, THREE, THREE | {"repetition_window": 4}])
def test_the_prior_of_a_move_is_what_it_gains_less_earlier_occurrences(settings):
    """Play every listed move, also those of queens, Beetles and Pillbugs, and compare the positions."""
    env, found = roots(count=8, plies=40, prior="pressure", **settings)
    repeated = 0
    for root in found[3::4]:
        state, scores = root["state"], root["action_prior"]
        game, place = root["action_mask"].nonzero(as_tuple=True)
        before = {name: value[game] for name, value in state.items() if name != "step"}
        after = dynamics.play(before, state["moves"][game, place], env.hand)
        pressure = [
            6 * dynamics.pressure(each, env.hand, player=before["player"]) for each in (before, after)
        ]
        earlier = dynamics.repetitions(after) - 1
        expected = pressure[1] - pressure[0] - 3 * earlier
        torch.testing.assert_close(scores[game, place], expected, atol=1e-4, rtol=0)
        assert (scores[~root["action_mask"]] == 0).all()
        repeated += int(earlier.sum())
    # With three tiles random games go back and forth, so that the count matters.
    assert settings != THREE or repeated > 10


def test_nodes_show_what_is_around_the_queens():
    """Beside a queen are as many tiles on the ground as the rules count around it; a tile in hand is not."""
    env, found = roots(**ALL)
    for root in (*found[:4], *found[4::6]):
        state, x = root["state"], root["graph", "x"]
        counts = dynamics.around_queens(state, env.hand).float()
        mover = state["player"].unsqueeze(-1)
        for column, player in ((19, mover), (21, 1 - mover)):
            expected = counts.gather(1, player) / 6
            torch.testing.assert_close(x[..., column], expected.expand_as(x[..., column]))
            level = dynamics.swap_seats(state["level"], state["player"])
            ground = x[:, : env.hand.tiles, column + 1] * (level == 0)
            torch.testing.assert_close(ground.sum(-1, keepdim=True), 6 * expected)
            queen = env.hand.queen + (column == 21) * env.hand.size
            down = level[:, queen] >= 0
            empty = (x[:, env.hand.tiles :, column + 1]).sum(-1)
            torch.testing.assert_close(empty, (6 - 6 * expected.squeeze(-1)) * down)
            assert not x[:, : env.hand.tiles, column + 1][level < 0].any()


def test_a_policy_can_begin_as_the_prior():
    env, found = roots(count=16, plies=24, prior="pressure", **SMALL)
    model = make_actor_critic(env.graph, env.actions, ModelConfig(prior=4.0))
    for root in found[8::4]:
        probability = model.actor.get_dist(root).probs
        best = root["action_prior"].masked_fill(~root["action_mask"], -torch.inf).amax(-1, keepdim=True)
        chosen = probability.argmax(-1, keepdim=True)
        assert torch.equal(root["action_prior"].gather(1, chosen), best)


def test_games_end_with_rewards_in_the_movers_view():
    env = make_env("hive", num_envs=12, seed=0, opening_plies=4, max_steps=50)
    torch.manual_seed(0)
    players, root = (greedy(env), random_player(env)), env.reset()
    ends = {"won": 0, "lost": 0, "drawn": 0, "truncated": 0}
    for _ in range(110):
        by_greedy, by_chance = (player(root.copy())["action"] for player in players)
        root["action"] = torch.where(root["player"] == 0, by_greedy, by_chance)
        stepped, root = env.step_and_maybe_reset(root)
        after, mover = stepped["next"], stepped["player"]
        surrounded = dynamics.surrounded(after["state"], env.hand)
        rows = torch.arange(env.num_envs)
        expected = surrounded[rows, 1 - mover].float() - surrounded[rows, mover].float()
        assert torch.equal(after["reward"].squeeze(-1), expected)
        repeated = dynamics.repetitions(after["state"]) >= 3
        assert torch.equal(after["terminated"].squeeze(-1), surrounded.any(-1) | repeated)
        ends["won"] += int((expected > 0).sum())
        ends["lost"] += int((expected < 0).sum())
        ends["drawn"] += int((after["terminated"].squeeze(-1) & (expected == 0)).sum())
        ends["truncated"] += int(after["truncated"].sum())
        white = torch.where(mover == 0, expected, -expected)
        assert torch.equal(after["metrics", "first_player_won"], (white > 0).float())
        assert torch.equal(after["metrics", "second_player_won"], (white < 0).float())
    assert ends["won"]
    assert ends["truncated"]


def test_random_play_never_has_more_moves_than_fit():
    for settings in (SMALL, {}, ALL):
        env, found = roots(count=16, plies=50, **settings)
        assert not any(root["action_mask"][:, -1].any() for root in found), env.config


def test_openings_are_random_plies():
    env = make_env("hive", num_envs=64, opening_plies=(3, 5), seed=0, hand="QAAGB")
    plies = env.reset()["state", "plies"]
    assert plies.min() == 3
    assert plies.max() == 5


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"hand": "AAA"}, "one queen"),
        ({"expansions": "X"}, "expansions are any of"),
        ({"expansions": "MM"}, "at most one M"),
        ({"opening_plies": -1}, "cannot be negative"),
    ],
)
def test_settings_that_cannot_be_played_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        make_env("hive", **settings)


def test_greedy_beats_random_play():
    env = make_env("hive", num_envs=16, seed=0, opening_plies=4, max_steps=80)
    match = play_match(env, greedy(env), random_player(env), seed=0)
    assert match.score > 0.6
    assert min(*match.as_first, *match.as_second) == 0.5


def test_a_replay_shows_the_tiles_and_the_moves():
    env = make_env("hive", num_envs=1, seed=0, **ALL)
    torch.manual_seed(0)
    root, states = env.reset(), []
    for _ in range(40):
        states.append(root["state"][0])
        _, root = env.step_and_maybe_reset(env.rand_action(root))
    film = replay(torch.stack(states))
    check(film)
    assert film["captions"][1].startswith("w")
    assert " " in film["captions"][2]
    assert len(film["frames"][8]["tiles"]["x"]) == int((states[8]["level"] >= 0).sum())
    for frame, state in zip(film["frames"], states, strict=True):
        movable = {
            int(slot) for slot in state["moves"][:, 0] if slot >= 0 and slot < state["level"].shape[-1]
        }
        on_board = {slot for slot in movable if state["level"][slot] >= 0}
        assert len(frame["movable"]["x"]) == len(on_board)
    assert any(frame["movable"]["x"] for frame in film["frames"])


def test_the_recipe_makes_updates():
    config = RECIPE.config
    env = make_env("hive", num_envs=8, seed=0, **config.env.to_plain())
    torch.manual_seed(0)
    model = make_actor_critic(env.graph, env.actions, config.model)
    algorithm = PPO(model, config.algorithm, seed=0)
    rollout = SelfPlayRollout(env, algorithm.policy, rollout_length=8, share=0.25)
    before = [parameter.clone() for parameter in model.parameters()]
    for _ in range(2):
        algorithm.learn(rollout.collect())
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("turn", ["rotated", "reflected"])
def test_a_policy_does_not_see_how_the_board_is_turned(turn):
    """Each move has the probability of its image on the turned board, and the position the same value."""
    env, found = roots(count=6, plies=24, prior="pressure", **ALL)
    root = found[-1]
    state, turned = root["state"], root["state"].clone()
    q, r = state["q"], state["r"]
    placed = state["level"] >= 0
    image = (-r, q + r) if turn == "rotated" else (r, q)
    for name, value in zip("qr", image, strict=True):
        turned[name] = torch.where(placed, value, state[name])
    turned["moves"] = dynamics.list_moves(turned, env.hand, max_moves=state["moves"].shape[1])
    torch.manual_seed(1)
    model = make_actor_critic(env.graph, env.actions, RECIPE.config.model).eval()
    one, two = (
        root.clone().update({**dict(env.observe(each).items()), "state": each, "action_mask": env.mask(each)})
        for each in (state, turned)
    )
    (before, value), (after, other) = model.evaluate(one), model.evaluate(two)
    assert not torch.equal(state["moves"], turned["moves"])
    torch.testing.assert_close(value, other)
    torch.testing.assert_close(before.probs.sort(-1).values, after.probs.sort(-1).values)


def test_a_policy_plays_with_other_hands():
    """Features do not depend on the hand, so weights from a small one run on a large one."""
    small, large = (make_env("hive", num_envs=2, prior="pressure", **hand) for hand in (SMALL, ALL))
    model = make_actor_critic(small.graph, small.actions, RECIPE.config.model)
    other = make_actor_critic(large.graph, large.actions, RECIPE.config.model)
    other.load_state_dict(model.state_dict())
    root = other.actor(large.reset())
    assert root["action_mask"].gather(1, root["action"].unsqueeze(-1)).all()


def test_the_verb_prints_counts(capsys):
    from edgewise.cli.main import main

    assert main(["hive", "perft", "--depth", "3", "--pieces", "MLP", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == [7, 294, 6678]


def test_shaped_rewards_add_up_to_the_pressure_at_the_end():
    env = make_env("hive", **SMALL | {"max_steps": 12, "shaping": 0.5}, num_envs=64, seed=0)
    torch.manual_seed(0)
    root, total = env.reset(), torch.zeros(64)
    for _ in range(12):
        mover = root["player"]
        root = env.rand_action(root)
        after = env.step(root)["next"]
        assert not after["terminated"].any()
        total += after["reward"].squeeze(-1) * (1 - 2 * mover)
        root = env.step_mdp(root)
    assert after["truncated"].all()
    white, black = dynamics.around_queens(after["state"], env.hand).float().unbind(-1)
    torch.testing.assert_close(total, 0.5 * (black - white) / 6)
    assert total.any()
    assert not make_env("hive", **SMALL, num_envs=64, seed=0).rollout(12)["next", "reward"].any()
