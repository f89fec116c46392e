"""Outcomes of stored positions against a plain loop over whole games, across the end of the ring."""

import random

import pytest
import torch
from tensordict import TensorDict

from edgewise.data import position_buffer
from edgewise.data.position_buffer import PositionBuffer


def random_games(worlds, steps, seed):
    """Moves with any player, rewards on the way, and ends at random; the same player may move twice."""
    chance = random.Random(seed)
    return [
        [
            (chance.randrange(2), chance.choice([0.0, 0.0, 0.5, 1.0, -1.0]), chance.random() < 0.2)
            for _ in range(steps)
        ]
        for _ in range(worlds)
    ]


def outcomes(moves):
    """The result of every move's game for its player; None while the game has not ended."""
    found, start = [None] * len(moves), 0
    for end, (_, _, done) in enumerate(moves):
        if done:
            for place in range(start, end + 1):
                own = moves[place][0]
                later = moves[place : end + 1]
                found[place] = sum(reward if player == own else -reward for player, reward, _ in later)
            start = end + 1
    return found


def filled(games, *, capacity, batch):
    """A buffer that got the games in batches of some steps."""
    buffer = PositionBuffer(capacity)
    for first in range(0, len(games[0]), batch):
        part = [moves[first : first + batch] for moves in games]
        player, reward, done = (torch.tensor([[move[k] for move in row] for row in part]) for k in range(3))
        number = torch.arange(first, first + batch).expand(len(games), batch)
        world = torch.arange(len(games)).unsqueeze(-1).expand(len(games), batch)
        positions = TensorDict({"player": player, "number": number, "world": world}, player.shape)
        buffer.extend(positions, reward=reward, done=done)
    return buffer


def compare(buffer, games, length):
    """Whether many samples are exactly the finished positions still held, with the plain outcomes."""
    samples = buffer.sample(2000, generator=torch.Generator().manual_seed(0))
    rows = zip(*(samples[name].tolist() for name in ("world", "number", "outcome")), strict=True)
    seen = {(world, number): outcome for world, number, outcome in rows}
    steps = len(games[0])
    expected = {
        (world, number): value
        for world, moves in enumerate(games)
        for number, value in enumerate(outcomes(moves))
        if value is not None and number >= steps - length
    }
    assert buffer.finished == len(expected)
    return seen == expected


@pytest.mark.parametrize(("capacity", "length"), [(1000, 60), (60, 20), (40, 13), (9, 6)])
def test_outcomes_are_those_of_a_plain_loop(capacity, length):
    games = random_games(3, 60, seed=capacity)
    batch = 6
    held = min(max(capacity // 3, batch), 60)
    assert held == length
    assert compare(filled(games, capacity=capacity, batch=batch), games, length)


def test_players_that_are_thought_to_alternate_would_show(monkeypatch):
    """The planted fault: every reward is taken for the mover's own."""
    monkeypatch.setattr(position_buffer, "_side", lambda positions: torch.ones(positions.batch_size))
    games = random_games(3, 60, seed=1)
    assert not compare(filled(games, capacity=1000, batch=6), games, 60)


def test_a_restored_buffer_samples_the_same():
    games = random_games(3, 54, seed=5)
    one, other = filled(games, capacity=60, batch=6), PositionBuffer(60)
    other.load_state_dict(one.state_dict())
    left, right = (each.sample(64, generator=torch.Generator().manual_seed(1)) for each in (one, other))
    assert (left == right).all()
    assert one.state_dict()["cursor"] == other.state_dict()["cursor"] != 0


def test_an_entry_is_replaced_at_its_place():
    games = random_games(2, 24, seed=2)
    buffer = filled(games, capacity=1000, batch=6)
    samples = buffer.sample(1, generator=torch.Generator().manual_seed(3))
    buffer.replace(samples["index"], "number", torch.tensor([999]))
    changed = (buffer.stored["number"] == 999).nonzero().tolist()
    assert changed == [[int(samples["world"]), int(samples["number"])]]
