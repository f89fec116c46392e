"""Games on the page: rules of a session, what the server refuses, and a whole game clicked in a browser."""

import http.client
import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from tests.experiments.devtools import Browser
from tests.report.browser import needs_chromium

from edgewise.cli.main import main
from edgewise.config.errors import ConfigError, DataError
from edgewise.experiments.browser.players import Player, make_table
from edgewise.experiments.browser.server import CONNECTIONS, LARGEST_BODY, GameServer
from edgewise.experiments.browser.session import Session
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.hive.game_file import read_game

THREE = {"size": 3}
TINY = {
    "training.total_frames": 32,
    "training.num_envs": 8,
    "training.rollout_length": 4,
    "model.encoder.hidden": 8,
    "model.encoder.layers": 1,
    "algorithm.simulations": 2,
    "algorithm.updates": 1,
    "evaluation.episodes": 2,
    "evaluation.baselines": [],
    "logging.tensorboard": False,
}


def session(*names, seat=0, settings=None, search=0):
    chosen = THREE if settings is None else settings
    return Session(make_table(list(names) or ["hex:shortest_way"], settings=chosen, search=search), seat)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has learnt nothing."""
    return start(load_config("hex-expert", keywords=TINY), folder=tmp_path_factory.mktemp("runs") / "tiny")


def finish(game):
    """Play the first legal move until the game is over."""
    while not game.over:
        if game.machine() is None:
            game.play(game.board().moves[0].name)
        else:
            game.think()


def test_a_game_against_a_baseline_ends_with_a_winner():
    game = session()
    finish(game)
    assert game.result() in ("you win", "shortest_way wins")
    board, moves, result = game.record().strip().rsplit("\n", 2)
    assert board.count(".") == 9
    assert moves.split() == game.view()["history"]
    assert result == ("1-0" if game.result() == "you win" else "0-1")
    with pytest.raises(DataError, match="over"):
        game.play("a1")


def test_the_result_names_the_side_that_connected():
    """The first player fills a column of three before the second, who is made to play elsewhere."""
    moves = iter([2, 5])
    scripted = Player("scripted", lambda root: root.set("action", torch.tensor([next(moves)])))
    table = replace(make_table(["hex:random"], settings=THREE), players=(scripted,))
    game = Session(table, 0)
    for name in ("a1", "a2", "a3"):
        game.play(name)
        if not game.over:
            game.think()
    assert game.result() == "you win"
    game = Session(table, 1)
    moves = iter([0, 3, 6])
    for name in ("b1", "b2"):
        game.think()
        game.play(name)
    game.think()
    assert game.result() == "scripted wins"
    assert game.record().endswith("1-0\n")


def test_moves_that_cannot_be_made_are_refused_in_words():
    game = session()
    with pytest.raises(DataError, match="not a legal move"):
        game.play("z9")
    with pytest.raises(DataError, match="your turn"):
        game.think()
    with pytest.raises(DataError, match="no move to take back"):
        game.take_back()
    game.play("a1")
    with pytest.raises(DataError, match="turn of shortest_way"):
        game.play("a2")


def test_taking_back_returns_to_the_own_decision():
    game = session(seat=1)
    game.think()
    before = game.view()
    game.play(game.board().moves[0].name)
    game.think()
    game.take_back()
    after = game.view()
    assert after["tiles"] == before["tiles"]
    assert after["moves"] == before["moves"]
    assert len(after["history"]) == 1
    assert after["version"] > before["version"]


def test_a_run_shows_its_preferences_and_value(run):
    game = session(str(run), search=2)
    seen = game.view()
    assert sum(move["share"] for move in seen["moves"]) == pytest.approx(1, abs=1e-4)
    assert -1 <= seen["value"] <= 1
    assert seen["names"] == ("you", "tiny + search 2")
    finish(game)
    assert game.view()["moves"] == []


def test_two_policies_play_each_other(run):
    game = session(str(run), "hex:random", seat=None)
    finish(game)
    assert game.result().endswith("wins")
    assert game.names == ("tiny", "random")


def test_hive_is_played_with_sources_and_saved_as_a_game_string():
    game = session("hive:random", settings={"hand": "QAAGB", "max_steps": 12})
    finish(game)
    assert game.result() == "the game is a draw" or game.result().endswith(("win", "wins"))
    found = read_game(game.record())
    hand, moves, position = found.hand, list(found.moves), found.position
    assert hand.letters == "QBGAA"
    assert moves == [ply.name for ply in game.plies]
    assert int(position["plies"]) == len(moves)
    sources = {tuple(move["source"]) for move in session("hive:random", settings={}).view()["moves"]}
    assert len(sources) == 4


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["nothing"], "no run folder and no baseline"),
        (["hex:wizard"], "no baseline 'wizard'"),
        (["hex:random", "hive:random"], "one game"),
        (["graphwalk:shortest"], "cannot be played"),
    ],
)
def test_players_that_do_not_exist_are_refused(names, complaint):
    with pytest.raises(ConfigError, match=complaint):
        make_table(names, settings={})


def test_the_verb_says_what_is_wrong(capsys):
    assert main(["play", "hex:random", "hex:random", "hex:random"]) == 2
    assert main(["play", "nothing"]) == 2
    assert main(["play", "hex:random", "--size", "3", "--port", "99999"]) == 2
    shown = capsys.readouterr().err
    assert all(words in shown for words in ("one or two players", "no run folder", "--port 99999"))


@pytest.fixture
def server():
    """A server of a game on 3 x 3, in a thread."""
    found = GameServer(session())
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


def ask(server, method, name, *, body=None, headers=None, path=None):
    """Status, headers and content of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    given = {"Origin": server.origin, **(headers or {})}
    given = {key: value for key, value in given.items() if value is not None}
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path or f"/{server.token}/{name}", content, given)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return found


def test_the_page_and_a_move(server):
    status, headers, page = ask(server, "GET", "")
    assert status == 200
    assert "page.js" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    version = json.loads(ask(server, "GET", "position")[2])["version"]
    status, _, after = ask(server, "POST", "play", body={"move": "b2", "version": version})
    assert status == 200
    assert json.loads(after)["history"] == ["b2"]
    assert ask(server, "GET", "game.txt")[2].endswith("b2\n*\n")


REFUSED = {
    "a foreign origin": (403, "http://evil.example", {"headers": {"Origin": "http://evil.example"}}),
    "no origin": (403, "on the page", {"headers": {"Origin": None}}),
    "another host": (403, "its own address", {"headers": {"Host": "evil.example"}}),
    "no token": (404, "token", {"path": "/play"}),
    "a wrong token": (404, "token", {"path": "/aaaaaaaaaaaaaaaaaaaaaa/play"}),
    "a huge request": (413, str(LARGEST_BODY), {"body": b"x" * 100_000}),
    "a request that claims to be huge": (
        413,
        "at most",
        {"body": b"{}", "headers": {"Content-Length": "9" * 40}},
    ),
    "no JSON": (400, "not JSON", {"body": b"{move"}),
    "deep JSON": (400, "JSON", {"body": b"[" * 4000}),
    "no object": (400, "JSON object", {"body": [1]}),
    "a move that is no text": (400, "expected a text", {"body": {"move": 7}}),
    "an illegal move": (400, "not a legal move", {"body": {"move": "z9"}}),
    "another tab": (409, "another tab", {"body": {"move": "a1", "version": 0}}),
    "no version": (409, "another tab", {"body": {"move": "a1", "version": None}}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_said(server, case):
    expected, words, asked = REFUSED[case]
    body = asked.get("body", {"move": "a1"})
    if isinstance(body, dict):
        body = {"version": server.session.version, **body}
    status, _, text = ask(
        server, "POST", "play", body=body, headers=asked.get("headers"), path=asked.get("path")
    )
    assert status == expected
    assert words in json.loads(text)["error"]
    assert server.session.plies == []


@pytest.mark.parametrize(
    "name", ["../server.py", "server.py", "..%2fserver.py", "/etc/passwd", "page.html/.."]
)
def test_nothing_else_is_served_from_the_disk(server, name):
    status, _, text = ask(server, "GET", name)
    assert status == 404
    assert "there is no" in json.loads(text)["error"]


def test_a_moved_piece_of_the_page_cannot_change_the_game_by_a_link(server):
    """The planted hole: a GET that plays."""
    assert ask(server, "GET", "play?move=a1")[0] == 404
    assert server.session.plies == []


@needs_chromium
def test_a_whole_game_is_clicked_through_in_a_browser(server):
    with Browser(server.address) as page:
        page.wait("document.body?.dataset.version")
        assert page.status == "you to move"
        page.click("[data-move='b2']")
        page.wait("position.history.length === 2 && position.thinks === null")
        page.click("#back")
        page.wait("position.history.length === 0")
        page.click("[data-move='a1']")
        page.wait("position.thinks === null && position.history.length >= 2 || position.over")
        # Another tab makes a move; this one is told, and shows it.
        server.session.take_back()
        page.click("[data-move]")
        page.wait("document.getElementById('status').textContent.includes('another tab')")
        while not page.value("position.over"):
            plies = page.value("position.history.length")
            page.click("[data-move]")
            page.wait(f"position.over || position.history.length >= {plies + 2} && position.thinks === null")
        assert page.status in ("you win", "shortest_way wins")
        assert page.value("document.querySelectorAll('[data-move]').length") == 0
        assert page.value("fetch('game.txt').then((answer) => answer.text())") == server.session.record()
        page.click("#new")
        page.wait("position.history.length === 0 && !position.over")


def test_slow_connections_lock_nobody_out(server):
    """Sixteen connections that send a byte now and then: the page still answers, and they are let go."""
    slow = [socket.create_connection(server.server_address) for _ in range(CONNECTIONS + 4)]
    try:
        for connection in slow:
            with suppress(OSError):
                connection.sendall(b"G")
        began = time.monotonic()
        for _ in range(3):
            assert ask(server, "GET", "position")[0] == 200
        assert time.monotonic() - began < 5
        assert len(server.unread) <= CONNECTIONS
    finally:
        for connection in slow:
            connection.close()


def test_a_request_has_one_deadline_however_its_bytes_come(monkeypatch, server):
    monkeypatch.setattr("edgewise.experiments.browser.server.TIMEOUT", 0.3)
    with socket.create_connection(server.server_address) as connection:
        connection.settimeout(5)
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 5:
                connection.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - began < 3
