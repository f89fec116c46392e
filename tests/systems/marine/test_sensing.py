"""Perception noise goes where its name says, and the discounted metric starts undiscounted."""

import torch

from edgewise.envs.registry import make_env
from edgewise.systems.marine import sensing
from edgewise.systems.marine.env import DISCOUNT


def scene():
    exists = torch.ones(50, 3, dtype=torch.bool)
    place = torch.zeros(50, 3, 2)
    return sensing.Scene(exists, place, place, torch.ones(50, 3), exists)


def sampled(**deviations):
    generator = torch.Generator().manual_seed(0)
    return sensing.sample_noise(scene(), sizes=None, generator=generator, **deviations)


def test_places_and_velocities_have_their_own_deviations():
    noise = sampled(position=3.0, velocity=0.25)
    assert 2.8 < noise.place.std() < 3.2
    assert 0.23 < noise.velocity.std() < 0.27
    assert (noise.size == 1).all()


def test_without_noise_of_places_only_velocities_are_noisy():
    noise = sampled(position=0.0, velocity=1.0)
    assert not noise.place.any()
    assert noise.velocity.std() > 0.9


def test_the_discounted_metric_is_that_of_the_definition():
    env = make_env("marine", num_envs=4, seed=0, num_robots=2, max_steps=9)
    root, total = env.reset(), torch.zeros(4)
    for number in range(5):
        step, root = env.step_and_maybe_reset(env.rand_action(root))
        total = total + DISCOUNT**number * step["next", "reward"].sum((-1, -2))
        torch.testing.assert_close(step["next", "metrics", "discounted"], total / 2, atol=1e-4, rtol=1e-4)
