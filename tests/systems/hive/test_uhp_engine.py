"""The engine for other programs: a scripted conversation, games over pipes, and wrong game strings."""

import sys

import pytest
from tests.systems.hive.reference import PASS, Game
from tests.systems.hive.uhp_engine import read, write

from edgewise.config.errors import ConfigError, DataError
from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.systems.hive.baselines import random_player
from edgewise.systems.hive.game_file import read_game, read_type
from edgewise.systems.hive.notation import Hive, read_destination, read_move
from edgewise.systems.hive.pieces import BASE_HAND
from edgewise.systems.hive.uhp import Engine, uhp_player
from edgewise.systems.hive.uhp_engine import UhpEngine, converse
from edgewise.systems.hive.uhp_players import chooser

COMMAND = f"{sys.executable} -m edgewise.cli hive engine greedy"


@pytest.fixture
def engine():
    return UhpEngine("first", lambda game: game.moves[0] if game.moves else "wA1")


def said(engine, *lines):
    return list(converse(engine, lines))[3:]  # without the greeting


def test_a_scripted_conversation(engine):
    greeting = list(converse(engine, []))
    assert greeting[0].startswith("id edgewise ")
    assert greeting[1:] == ["Mosquito;Ladybug;Pillbug", "ok"]
    assert said(engine, "newgame Base+MLP") == ["Base+MLP;NotStarted;White[1]", "ok"]
    assert said(engine, "play wA1") == ["Base+MLP;InProgress;Black[1];wA1", "ok"]
    assert said(engine, "bestmove depth 1", "bestmove time 00:00:05") == ["wA1", "ok", "wA1", "ok"]
    assert said(engine, "play bA1 wA1-", "undo") == [
        "Base+MLP;InProgress;White[2];wA1;bA1 wA1-",
        "ok",
        "Base+MLP;InProgress;Black[1];wA1",
        "ok",
    ]
    assert said(engine, "play bG1 wA1-")[0] == "Base+MLP;InProgress;White[2];wA1;bG1 wA1-"
    assert said(engine, "options") == ["ok"]
    assert said(engine, "exit", "info") == []


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("play wA1 bQ-", "invalidmove"),
        ("play wA9", "invalidmove 'wA9' is no tile"),
        ("pass", "invalidmove a pass is legal only"),
        ("undo 2", "err undo: got 2, and 0 moves"),
        ("undo x", "err undo: got 'x'"),
        ("bestmove", "err bestmove: got ''"),
        ("options set Threads 2", "err options"),
        ("newgame Chess", "err 'Chess' is no type of game"),
        ("newgame Base;Lost;White[1]", "err 'Base;Lost;White[1]' is no game string"),
        ("newgame Base;InProgress;White[2];wA1;bA1", "err move 2: 'bA1' has no destination"),
        ("dance", "err 'dance' is no command"),
    ],
)
def test_what_is_wrong_is_said_and_the_game_stays(engine, line, answer):
    said(engine, "newgame Base")
    found = said(engine, line)
    assert len(found) == 2
    assert found[0].startswith(answer)
    assert found[1] == "ok"
    assert said(engine, "play wA1") == ["Base;InProgress;Black[1];wA1", "ok"]


def test_commands_before_a_game_are_refused(engine):
    assert said(engine, "play wA1")[0].startswith("err no game has been started")


def test_legal_moves_are_those_of_plain_python():
    """A whole game of the last legal move in each ply; both programs name the same moves."""
    engine = UhpEngine("none", lambda game: "")
    said(engine, "newgame Base+MLP")
    game = Game(BASE_HAND + "MLP")
    for _ in range(24):
        ours = {read(name, game) for name in said(engine, "validmoves")[0].split(";")}
        legal = set(game.moves())
        # Equal tiles in hand are one choice for us; the plain rules list the first of them too.
        assert ours == legal
        chosen = sorted(legal, key=str)[-1]
        name = "pass" if chosen == PASS else write(chosen, game)
        assert said(engine, f"play {name}")[0].split(";")[-1] == name
        game.play(chosen)


def test_our_engine_plays_as_an_opponent_over_pipes():
    """Both directions at once: the arena asks a process that runs `edgewise hive engine`."""
    env = make_env("hive", num_envs=2, seed=0, opening_plies=2, max_steps=6, keep_moves=True)
    match = play_match(env, uhp_player(env, COMMAND), random_player(env), seed=0)
    assert match.games == 2
    running = Engine(COMMAND)
    assert running.ask("newgame Base+P") == ["Base+P;NotStarted;White[1]"]
    move = running.ask("bestmove depth 2")
    assert running.ask(f"play {move[0]}")[0].endswith(f";{move[0]}")
    running.close()


def test_players_are_found_by_name_and_others_are_said():
    game = read_game("Base+M;InProgress;Black[1];wA1")
    assert chooser("greedy")(game).startswith("b")
    small = read_game("QBGAA;NotStarted;White[1]")
    assert chooser("random")(small).startswith("w")
    with pytest.raises(ConfigError, match="no player wizard"):
        chooser("wizard")
    with pytest.raises(ConfigError, match="not of hive"):
        chooser("zoo:hex-quick")


def surrounded():
    """Moves of a random game that ended, and a move that the rules would list after its end."""
    import random

    import torch

    from edgewise.systems.hive import dynamics
    from edgewise.systems.hive.game_file import MOST_MOVES, WINDOW
    from edgewise.systems.hive.notation import write_move

    hand = read_type("QAAA")
    for seed in range(200):
        draw = random.Random(seed)
        position = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=WINDOW)
        names = []
        while len(names) < 80:
            hive = Hive.of(position, hand)
            move = draw.choice(hive.moves)
            names.append(write_move(move, hive))
            position = dynamics.advance(position, torch.tensor([move], dtype=torch.int16), hand)
            if bool(dynamics.is_over(position, hand)):
                return names, write_move(Hive.of(position, hand).moves[0], Hive.of(position, hand))
    raise AssertionError("no game ended")


def test_a_move_after_the_end_is_refused(engine):
    names, more = surrounded()
    whole = ";".join(["QAAA", "InProgress", "White[1]", *names])
    assert read_game(whole).moves == tuple(names)
    with pytest.raises(DataError, match=rf"move {len(names) + 1}: .*after the end of the game"):
        read_game(f"{whole};{more}")
    state = said(engine, f"newgame {whole}")[0].split(";")[1]
    assert state in ("WhiteWins", "BlackWins", "Draw")
    assert said(engine, f"play {more}")[0].startswith("invalidmove")
    assert said(engine, "bestmove depth 1")[0].startswith(f"err the game is over: {state}")
    assert said(engine, "validmoves") == ["", "ok"]


def test_a_climb_is_written_by_the_tile_below():
    """A beetle beside an ant: `wB1 wA1` goes on top of it; the same hex by a neighbour is refused."""
    game = read_game("Base;InProgress;White[1];wA1;bA1 wA1-;wQ -wA1;bQ bA1-;wB1 \\wQ;bA2 bQ-")
    hive = Hive.of(game.position, game.hand)
    climb = read_move("wB1 wQ", hive)
    assert climb in hive.moves
    with pytest.raises(DataError, match="wQ is there") as caught:
        read_destination(["wB1", "-wA1"], hive)
    assert "wB1 wQ" in caught.value.hint
    assert read_destination(["wB1", "wQ/"], hive) not in hive.stacks
