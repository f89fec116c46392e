"""Boats agree, number by number, with a simulation of one boat after another."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.systems.marine import oracle
from tests.systems.marine.worlds import placed, step, still

ENDINGS = {"collision": 0, "goal": 0, "rule": 0, "full view": 0}


def crowd(seed, *, discrete):
    """A world small enough that boats meet, and eight actions for each of them."""
    draw = random.Random(seed)
    count, spread = draw.randint(1, 5), draw.choice((12.0, 25.0, 45.0))

    def boat():
        speeds = [draw.uniform(-2, 2), draw.uniform(-2, 2), draw.uniform(-0.5, 0.5)]
        places = [draw.uniform(0, spread) for _ in range(4)]
        thrust = [draw.uniform(-500, 1000) for _ in range(2)]
        return (*places[:2], draw.uniform(0, 2 * math.pi), *places[2:], *speeds, *thrust)

    robots = [boat() for _ in range(count)]
    obstacles = [(draw.uniform(0, 55), draw.uniform(0, 55), 1.0) for _ in range(draw.randint(0, 4))]
    cores = [
        (draw.uniform(0, 55), draw.uniform(0, 55), draw.random() < 0.5, 3 * math.pi)
        for _ in range(draw.choice((0, 0, 3)))
    ]

    def action():
        return draw.randrange(25) if discrete else (draw.uniform(-1, 1), draw.uniform(-1, 1))

    actions = [[action() for _ in robots] for _ in range(8)]
    return robots, obstacles, cores, actions


def compare(seed, *, discrete):
    robots, obstacles, cores, actions = crowd(seed, discrete=discrete)
    world = {"obstacles": obstacles, "cores": cores}
    env = still(robots, **world, actions="discrete" if discrete else "continuous")
    state = placed(env, robots, **world)
    boats = [oracle.Boat(*row[:3], row[3:5], list(row[5:8]), list(row[8:])) for row in robots]
    for action in actions:
        expected = oracle.step(boats, action, **world)
        state, outcome = step(env, state, action)
        for number, (boat, result) in enumerate(zip(boats, expected, strict=True)):
            check(state[0], float(outcome["reward"][0, number]), number, boat, result)
        assert bool(outcome["terminated"]) == all(boat.ended for boat in boats)
        if outcome["terminated"]:
            break


def check(state, reward, number, boat, result):
    exactly = {"rel": 1e-9, "abs": 1e-9}
    assert state["position"][number].tolist() == pytest.approx([boat.x, boat.y], **exactly)
    assert math.cos(state["heading"][number] - boat.heading) == pytest.approx(1.0)
    assert bool(state["active"][number]) == (not boat.ended)
    rows = state["objects"][number][state["object_mask"][number]].tolist()
    if result is None:
        assert (reward, rows) == (0.0, [])
        return
    assert reward == pytest.approx(result[0], **exactly)
    assert state["own"][number].tolist() == pytest.approx(result[1], **exactly)
    assert len(rows) == len(result[2])
    for ours, theirs in zip(rows, result[2], strict=True):
        assert ours == pytest.approx(theirs, **exactly)
    ENDINGS["full view"] += len(rows) == 5
    ENDINGS["rule"] += oracle.rule_angle(result[2], result[1][2:4]) > 0
    if result[3]:
        ENDINGS[result[3]] += 1
        assert bool(state["collided" if result[3] == "collision" else "reached"][number])


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.booleans())
def test_any_crowd_does_as_the_rules_say(seed, discrete):
    compare(seed, discrete=discrete)


def test_crowds_meet_everything_there_is():
    """Without this the comparison above could pass on worlds in which nothing happens."""
    for seed in range(60):
        compare(seed, discrete=seed % 2 == 0)
    assert min(ENDINGS.values()) > 3, ENDINGS
