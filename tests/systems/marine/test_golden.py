"""Numbers that the reference printed, to their last digit: current, motion, encounters, goal."""

import math

import pytest
import torch
from tests.systems.marine.worlds import placed, step, still

from edgewise.systems.marine import colregs, field

CORES = ((20.0, 20.0, True, 3 * math.pi), (26.0, 23.0, False, 3 * math.pi))
DIGITS = {"abs": 6e-10}


def near(expected):
    return pytest.approx(expected, **DIGITS)


def played(robots, actions, **world):
    """The environment, and state and rewards after each action of a world as it was recorded."""
    kind = world.pop("kind", "continuous")
    env = still(robots, **world, actions=kind)
    state, passed = placed(env, robots, **world), []
    for action in actions:
        state, outcome = step(env, state, action)
        passed.append((state[0], outcome["reward"][0, :, 0].tolist()))
    return passed


def pose(state, robot=0):
    return [*state["position"][robot].tolist(), float(state["heading"][robot])]


def off_course(state):
    """The angle of each robot that breaks a rule."""
    return colregs.violation(state["objects"], state["object_mask"], state["own"][:, 2:4]).tolist()


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((22.0, 21.0), (0.45, -0.9)),
        ((20.2, 20.1), (0.703448276, -1.406896552)),
        ((30.0, 10.0), (0.030405405, -0.042567568)),
    ],
)
def test_the_current_of_two_vortices(point, expected):
    cores = torch.tensor([core[:2] for core in CORES], dtype=torch.float64)
    circulation = torch.tensor([3 * math.pi, -3 * math.pi], dtype=torch.float64)
    points = torch.tensor([point], dtype=torch.float64)
    assert field.velocity(points, cores=cores, circulation=circulation)[0].tolist() == near(list(expected))


def test_one_boat_in_still_water():
    robot = (10, 10, 0.3, 40, 30, 0, 0, 0, 0, 0)
    actions = [[(1.0, 1.0)], [(1.0, -0.5)], [(-1.0, 0.25)], [(0.5, 1.0)]]
    first, second, third, fourth = played([robot], actions)
    assert pose(first[0]) == near([10.265270691, 10.082057841, 0.3])
    assert first[0]["through_water"][0].tolist() == near([1.107141778, 0.342479085, 0])
    assert first[0]["over_ground"][0].tolist() == near([1.016141816, 0.314329498, 0])
    assert first[0]["own"][0].tolist() == near([34.292826287, 10.241123583, 1.063648073, 0, 0, 500, 500])
    assert pose(second[0]) == near([11.043029888, 10.310901000, 0.366693494])
    assert second[0]["through_water"][0].tolist() == near([1.988512366, 0.526754131, 0.274908162])
    assert second[0]["thrust"][0].tolist() == [1000, 250]
    assert pose(third[0]) == near([12.056600284, 10.539125890, 0.492485712])
    assert third[0]["thrust"][0].tolist() == [500, 375]
    assert pose(fourth[0]) == near([13.246418988, 10.826175787, 0.579114689])
    assert fourth[0]["through_water"][0].tolist() == near([2.644680748, 0.758218637, 0.116481056])
    assert fourth[0]["thrust"][0].tolist() == [750, 875]
    rewards = [reward[0] for _, reward in (first, second, third, fourth)]
    assert rewards == near([0.166149154, 0.672699889, 0.864362632, 1.037416424])


def test_one_boat_between_two_vortices():
    robot = (22, 21, 5.9, 40, 30, 1, -0.5, 0.2, 400, 600)
    first, second = played([robot], [[21], [9]], cores=CORES, kind="discrete")
    assert pose(first[0]) == near([22.867735500, 20.197919618, 6.031752363])
    assert first[0]["thrust"][0].tolist() == [900, 350]
    assert pose(second[0]) == near([23.993223361, 19.308084425, 6.152230888])
    assert [first[1][0], second[1][0]] == near([0.286444033, 0.388909155])
    assert second[0]["own"][0].tolist() == near(
        [14.473566941, 12.690540454, 2.692548120, -1.395362928, 0.164655029, 650, 850]
    )


def test_two_boats_head_on():
    robots = [
        (10, 20, 0, 50, 20, 2, 0, 0, 400, 400),
        (24, 21, math.pi, 2, 21, -2, 0, 0, 400, 400),
    ]
    passed = played(robots, [[(0.0, 0.0)] * 2] * 5, obstacles=[(18, 28, 1)])
    rewards = [0.835635393, 0.822131377, 0.801112638, 0.762957943, -4.346195827]
    angles = [0.643646073, 0.778686229, 0.988873623, 1.370420575, 2.461958268]
    for robot in range(2):
        assert [reward[robot] for _, reward in passed] == near(rewards)
        assert [off_course(state)[robot] for state, _ in passed] == near(angles)
    assert passed[-1][0]["collided"].tolist() == [True, True]
    seen = passed[0][0]["objects"][1, :2]
    assert seen.flatten().tolist() == near([5, -7, 0, 0, 1, 12, 1, -2, 0, 2.795084972])


def test_two_boats_that_cross():
    robots = [
        (20, 20, 0, 50, 20, 2, 0, 0, 400, 400),
        (30, 28, 3 * math.pi / 2, 30, 2, 0, -2, 0, 400, 400),
    ]
    passed = played(robots, [[(0.0, 0.0)] * 2] * 3)
    assert [reward[0] for _, reward in passed] == near([0.774529273, 0.767384257, 0.757547007])
    assert [off_course(state)[0] for state, _ in passed] == near([1.254707271, 1.326157425, 1.424529925])
    assert [reward[1] for _, reward in passed] == near([0.9, 0.9, 0.9])
    assert [off_course(state)[1] for state, _ in passed] == [0.0, 0.0, 0.0]


def test_a_goal_is_reached():
    ((state, reward),) = played([(10, 10, 0, 13.4, 10, 3, 0, 0, 800, 800)], [[(0.0, 0.0)]])
    assert reward == near([11.389353809])
    assert float(state["position"][0, 0]) == near(11.489353809)
    assert state["reached"].tolist() == [True]
    assert state["active"].tolist() == [False]


def test_full_ahead_and_full_turn_are_as_fast_as_measured():
    ahead = played([(0, 0, 0, 500, 0, 0, 0, 0, 0, 0)], [[(1.0, 1.0)]] * 60)
    speeds = [float(state["through_water"][0, 0]) for state, _ in ahead]
    assert [speeds[1], speeds[3], speeds[-1]] == pytest.approx([2.71, 3.30, 3.333], abs=5e-3)
    turning = played([(0, 0, 0, 500, 0, 0, 0, 0, 1000, -500)], [[(0.0, 0.0)]] * 60)
    assert float(turning[-1][0]["through_water"][0, 2]) == pytest.approx(0.981, abs=5e-3)
