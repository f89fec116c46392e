"""Retrace on stored transitions against a loop over the steps of a rollout; players, agents that end."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.data.test_world_transitions import GAMMA, NODES, graph, played

from edgewise.data.transitions import Transitions
from edgewise.objectives.path_target import path_target

ACTIVE = ("agents", "active")


def rollout(seed, *, agents, players, steps):
    """Random episodes; an agent that has ended stays inactive until its world starts anew."""
    batch = played(seed, steps=steps, agents=agents, players=players)
    if not agents:
        return batch
    draw = torch.Generator().manual_seed(seed + 1)
    batch["action"] = torch.randint(NODES, (*batch.shape, agents), generator=draw)
    batch["graph"], batch["next", "graph"] = (graph(batch.shape, draw, ahead) for ahead in (0.0, 0.5))
    ends = torch.rand(*batch.shape, agents, generator=draw) < 0.3
    active, after = torch.ones_like(ends), torch.ones_like(ends)
    for step in range(steps):
        if step:
            active[:, step] = after[:, step - 1] | batch["next", "done"][:, step - 1]
        after[:, step] = active[:, step] & ~ends[:, step]
    batch[ACTIVE], batch["next", *ACTIVE] = active, after
    batch["next", "agents", "terminated"] = ~after
    batch["next", "reward"] *= active.unsqueeze(-1)
    return batch


def values_of(x, agents):
    """A table of action values by step and world, `[..., (A,) NODES]`; the same for both views of a state."""
    step, world = x[..., 0, 0].round(), x[..., 0, 1]
    choice = torch.arange(NODES)
    who = torch.arange(max(agents, 1)).unsqueeze(-1)
    found = (7 * step[..., None, None] + 3 * world[..., None, None] + 5 * who + 11 * choice).sin()
    return found if agents else found.squeeze(-2)


def one_by_one(batch, *, steps, lmbda, agents):
    """The oracle: the double sum of Retrace of complete transitions, by world, first step and agent."""
    after, found = batch["next"], {}
    here, there = values_of(batch["graph", "x"], agents), values_of(after["graph", "x"] + 0.1, agents)
    for world in range(batch.shape[0]):
        for first in range(batch.shape[1]):
            for agent in range(max(agents, 1)):
                of = (agent,) if agents else ()
                found[world, first, agent] = _trace(batch, here, there, world, first, of, steps, lmbda)
    return {key: value for key, value in found.items() if value is not None}


def _trace(batch, here, there, world, first, of, steps, lmbda):
    after, total, weight = batch["next"], 0.0, 1.0
    player = batch.get("player", None)
    for ahead in range(steps):
        at = first + ahead
        if at == batch.shape[1]:
            return None
        sign = 1 if player is None or player[world, at] == player[world, first] else -1
        chosen = here[(world, at, *of)][batch["action"][(world, at, *of)]]
        if ahead:
            greedy = here[(world, at, *of)].argmax() == batch["action"][(world, at, *of)]
            weight = weight * GAMMA * lmbda * float(greedy)
        over = bool(after["terminated"][world, at]) or bool(
            of and after["agents", "terminated"][(world, at, *of)]
        )
        is_last = bool(after["done"][world, at]) or ahead == steps - 1
        state = (
            there[(world, at, *of)]
            if is_last
            else here[(world, at + 1, *of)]
            if at + 1 < batch.shape[1]
            else None
        )
        if state is None:
            return None
        turned = sign if player is None else (1 if after["player"][world, at] == player[world, first] else -1)
        error = sign * after["reward"][(world, at, *of, 0)] + GAMMA * (0.0 if over else turned * state.max())
        total = total + weight * (error - (sign * chosen if ahead else 0.0))
        if over and not is_last:
            return total if _completes(after["done"][world], first, steps, batch.shape[1]) else None
        if is_last:
            return total
    return None


def _completes(done, first, steps, length):
    return first + steps <= length or bool(done[first : first + steps].any())


def by_paths(batch, *, steps, lmbda, agents):
    observed = ["graph", *([ACTIVE] if agents else [])]
    make = Transitions(observed, steps=steps, discount=GAMMA, paths=True)
    samples = make.expand(make.stored(batch))
    path = samples["path"].reshape(-1)
    at_path = values_of(path["observation", "graph", "x"], agents)
    at_end = values_of(samples["next_observation", "graph", "x"] + 0.1, agents)
    target = path_target(
        samples,
        next_value=at_end.amax(-1),
        path_value=at_path.gather(-1, path["action"].unsqueeze(-1)).squeeze(-1),
        path_best=at_path.amax(-1),
        followed=at_path.argmax(-1) == path["action"],
        active=path["observation", *ACTIVE] if agents else None,
        gamma=GAMMA,
        lmbda=lmbda,
    )
    x = samples["observation", "graph", "x"][:, 0]
    rows = target if agents else target.unsqueeze(-1)
    active = samples["observation", *ACTIVE] if agents else torch.ones_like(rows, dtype=torch.bool)
    return {
        (int(world), int(step), agent): rows[row, agent]
        for row, (step, world) in enumerate(x.tolist())
        for agent in range(rows.shape[1])
        if active[row, agent]
    }


@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(2, 5),
    lmbda=st.sampled_from([0.0, 0.7, 1.0]),
    kind=st.sampled_from(["world", "players", "agents"]),
)
def test_targets_are_the_double_sum_along_the_steps_of_a_rollout(seed, steps, lmbda, kind):
    agents = 2 if kind == "agents" else 0
    batch = rollout(seed, agents=agents, players=kind == "players", steps=10)
    found = by_paths(batch, steps=steps, lmbda=lmbda, agents=agents)
    expected = one_by_one(batch, steps=steps, lmbda=lmbda, agents=agents)
    assert found.keys() <= expected.keys()
    assert len(found) >= len([key for key in expected if key[1] + steps <= 10 and not agents])
    for key, value in found.items():
        torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fault", ["sign", "followed", "rewards"])
def test_planted_faults_show(fault):
    """A player whose change is not noticed, actions that all count as greedy, one reward too many."""
    batch = rollout(1, agents=0, players=True, steps=12)
    make = Transitions(["graph"], steps=3, discount=GAMMA, paths=True)
    samples = make.expand(make.stored(batch))
    best = torch.ones(samples["path"].numel())
    settings = {
        "next_value": torch.ones(len(samples)),
        "path_value": best / 2,
        "path_best": best,
        "followed": torch.arange(len(best)) % 3 > 0,
        "gamma": GAMMA,
        "lmbda": 1.0,
    }
    right = path_target(samples, **settings)
    if fault == "sign":
        samples["path", "sign"] = samples["path", "sign"].abs()
    elif fault == "followed":
        settings["followed"] = torch.ones_like(settings["followed"])
    else:
        samples["rewards"][:, 1:] += 1.0
    assert (path_target(samples, **settings) - right).abs().max() > 0.1
