"""Action values against value iteration, on tiny problems: masks, ragged sets, agents that end, teams."""

import pytest
import torch
from tests.algorithms.tables import (
    CONFIGS,
    END,
    LEGAL,
    Pair,
    Ragged,
    exact_values,
    learnt_values,
    make_env,
    make_learner,
    train,
)

UPDATES = {"rainbow": 700, "iqn": 700}
QUICK = [("dqn", "ragged"), pytest.param("dqn", "pair", marks=pytest.mark.thorough)]
WITHIN = 0.02


def largest_error(learner, name):
    """The largest error of a learnt value of a legal choice."""
    env, exact = make_env(name, num_envs=END), exact_values()
    root = env.reset()
    states = torch.arange(END)
    states = states.unsqueeze(-1).expand(END, 2) if name == "pair" else states
    root["graph"] = env.observe({"at": states})["graph"]
    root["action_mask"] = env.mask({"at": states})
    if name == "ragged":
        root["choices"] = Ragged.OFFERED[states]
        wanted = exact[states].gather(-1, Ragged.OFFERED[states].clamp(max=3))
    else:
        wanted = exact[states]
    found = learnt_values(learner, root)
    legal = root["action_mask"]
    return (found - wanted)[legal].abs().max().item()


def error_after_learning(algorithm, name, seed):
    env = make_env(name, seed=seed)
    learner = train(make_learner(algorithm, env, seed=seed), env, updates=UPDATES.get(algorithm, 400))
    return largest_error(learner, name)


@pytest.mark.parametrize("algorithm, name", QUICK)
def test_values_are_those_of_value_iteration(algorithm, name):
    assert error_after_learning(algorithm, name, 0) < WITHIN


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["nodes", "ragged", "pair"])
@pytest.mark.parametrize("algorithm", CONFIGS)
def test_values_are_exact_on_three_seeds(algorithm, name, seed):
    assert error_after_learning(algorithm, name, seed) < WITHIN


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["nodes", "pair"])
def test_returns_of_random_actions_need_retrace(name):
    """The ablation: plain returns of three random steps are far from the values of the best actions."""
    env = make_env(name)
    assert largest_error(train(make_learner("dqn retrace", env), env, updates=400), name) < WITHIN
    env = make_env(name)
    assert largest_error(train(make_learner("dqn", env, n_step=3), env, updates=200), name) > 10 * WITHIN


def test_a_maximum_over_illegal_choices_would_show(monkeypatch):
    """The planted fault: targets that do not read the mask of the next state."""
    env = make_env("nodes")
    learner = make_learner("dqn", env)
    target = learner.target

    def unmasked(samples):
        free = samples.clone()
        free["next_observation", "action_mask"].fill_(True)
        return target(free)

    monkeypatch.setattr(learner, "target", unmasked)
    assert largest_error(train(learner, env, updates=200), "nodes") > 4 * WITHIN


@pytest.mark.learning
@pytest.mark.parametrize("mixing", ["sum", "monotone"])
def test_a_team_learns_the_value_of_all_from_the_sum_of_rewards(mixing):
    """Both agents go on or end by themselves, so the value of the pair is the sum of their values."""
    env = make_env("pair")
    learner = make_learner("dqn", env, mixing=mixing)
    train(learner, env, updates=500 if mixing == "sum" else 3000)
    exact, network = exact_values(), learner.networks["network"]
    states = torch.cartesian_prod(torch.arange(END), torch.arange(END))
    env = Pair(env.config, num_envs=len(states), seed=0)
    root = env.reset()
    root["graph"] = env.observe({"at": states})["graph"]
    root["action_mask"] = env.mask({"at": states})
    for first in range(4):
        for second in range(4):
            action = torch.tensor([first, second]).expand(len(states), 2)
            legal = LEGAL[states, action].all(-1)
            with torch.no_grad():
                values = network(root).gather(-1, action.unsqueeze(-1)).squeeze(-1)
                found = network.joint(values, root)
            wanted = exact[states, action].sum(-1)
            assert (found - wanted)[legal].abs().max() < 2 * WITHIN
