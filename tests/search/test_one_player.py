"""Search with one player: good tours with exact values, at any scale, and instances encoded once."""

from itertools import permutations

import pytest
import torch

from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.search.gumbel import SEARCH_POLICY, GumbelSearch, scaled
from edgewise.search.mcts import MCTS
from edgewise.search.network import NetworkEvaluator
from edgewise.search.tree import EncodesInstances

CITIES, WORLDS = 6, 40


def instances(count=WORLDS, *, cities=CITIES):
    env = make_env("tsp", num_envs=count, seed=3, num_cities=cities)
    return env, env.reset()


def length(place, tour):
    ends = place[list(tour)]
    return float((ends - ends.roll(-1, 0)).norm(dim=-1).sum())


def shortest(root):
    """The lengths of the best tours, by trying all."""
    tours = [(0, *rest) for rest in permutations(range(1, CITIES))]
    return torch.tensor([min(length(place, tour) for tour in tours) for place in root["state", "place"]])


def to_come(state):
    """The best sum of rewards that is still possible, by trying all orders of the cities left."""
    found = []
    for place, visited, first, current in zip(
        *(state[name] for name in ("place", "visited", "first", "current")), strict=True
    ):
        left = [city for city in range(CITIES) if not visited[city]]
        begin = [int(current)] if current >= 0 else []
        tours = [[*begin, *rest, int(first) if begin else rest[0]] for rest in permutations(left)]
        lengths = [(place[tour[1:]] - place[tour[:-1]]).norm(dim=-1).sum() for tour in tours]
        found.append(-torch.stack(lengths).min())
    return torch.stack(found)


def exact(root):
    mask = root["action_mask"].float()
    return mask / mask.sum(-1, keepdim=True), to_come(root["state"])


def lengths_with(policy, env, root):
    total = torch.zeros(len(root))
    while not root["done"].all():
        root = env.simulate(policy(root.copy()))
        total -= root["reward"].squeeze(-1)
    return total


def test_exact_values_give_nearly_the_shortest_tours():
    """Not quite: the value of an action is a mean, in which tries of worse continuations count."""
    env, root = instances()
    search = GumbelSearch(env, exact, simulations=6, considered=6)
    found, expected = lengths_with(search, env, root), shortest(root)
    assert (found > expected - 1e-5).all()
    assert (found < expected + 1e-5).float().mean() > 0.6
    assert found.mean() < 1.02 * expected.mean()


def test_without_the_rewards_on_the_way_tours_would_be_longer(monkeypatch):
    """The planted fault: a search that believes the values and forgets the rewards up to them."""
    env, root = instances(10)
    advance = type(env).advance

    def forgetful(self, state, action):
        moved = advance(self, state, action)
        object.__setattr__(moved, "reward", torch.zeros_like(moved.reward))
        return moved

    search = GumbelSearch(env, exact, simulations=6, considered=6)
    expected = shortest(root)
    found = []
    while not root["done"].all():
        with monkeypatch.context() as patch:
            patch.setattr(type(env), "advance", forgetful)
            acted = search(root.copy())
        root = env.simulate(acted)
        found.append(-root["reward"].squeeze(-1))
    assert torch.stack(found).sum(0).mean() > 1.05 * expected.mean()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_scale_of_returns_does_not_matter(scale, monkeypatch):
    env, root = instances(10)
    policies = []
    for factor in (1.0, scale):
        advance = type(env).advance

        def scaled_advance(self, state, action, advance=advance, factor=factor):
            moved = advance(self, state, action)
            object.__setattr__(moved, "reward", moved.reward * factor)
            return moved

        with monkeypatch.context() as patch:
            patch.setattr(type(env), "advance", scaled_advance)
            noisy = GumbelSearch(
                env,
                lambda root, factor=factor: (exact(root)[0], factor * exact(root)[1]),
                simulations=12,
                value_scale=0.05,
            )
            policies.append(noisy(root.copy())[SEARCH_POLICY])
    torch.testing.assert_close(*policies, rtol=1e-2, atol=1e-2)


def test_values_of_legal_actions_are_scaled():
    legal = torch.tensor([[True, True, False, True], [True, False, False, False]])
    found = scaled(torch.tensor([[-4.0, -2.0, -100.0, -3.0], [5.0, 0.0, 0.0, 0.0]]), legal)
    torch.testing.assert_close(found[0, [0, 1, 3]], torch.tensor([0.0, 1.0, 0.5]))
    assert found[1, 0] == 0


@pytest.mark.parametrize("at_once", [1, 3])
def test_instances_are_encoded_once_and_valued_alike(at_once):
    env, root = instances(7, cities=(4, CITIES))
    torch.manual_seed(0)
    config = ModelConfig(encoder=EncoderConfig(hidden=16, heads=2, layers=2))
    networks = make_actor_critic(env.graph, env.actions, config).eval()
    evaluator = NetworkEvaluator(networks)
    assert isinstance(evaluator, EncodesInstances)
    calls = []
    for encoder in (networks.actor.encoder, networks.critic.encoder):
        encoder.register_forward_hook(lambda *_: calls.append(1))
    found = MCTS(env, evaluator, simulations=9, at_once=at_once).search(root["state"])
    assert len(calls) == 2
    plain = MCTS(env, lambda root: evaluator(root), simulations=9, at_once=at_once).search(root["state"])
    assert len(calls) > 2
    for name in ("visits", "child", "terminal"):
        assert torch.equal(getattr(found, name), getattr(plain, name)), name
    torch.testing.assert_close(found.value, plain.value, rtol=1e-4, atol=1e-5)


def test_more_simulations_shorten_tours():
    env, root = instances(40)

    def rough(root):
        generator = torch.Generator().manual_seed(0)
        prior, value = exact(root)
        return prior, value + 0.5 * torch.randn(len(value), generator=generator)

    few, many = (
        lengths_with(GumbelSearch(env, rough, simulations=count, considered=6), env, root).mean()
        for count in (2, 24)
    )
    assert many < few
