"""Gumbel search: its plan, its improvement over any prior, and signs where a player moves twice."""

import math

import pytest
import torch
from tensordict import TensorDict
from tests.search.tokens import MOST, TokensConfig, TokensEnv, values

from edgewise.search.gumbel import VISIT_OFFSET, GumbelSearch, halving_plans
from edgewise.search.mcts import MCTS


def exact(bonus=0.0):
    """An evaluator that knows the game, with a uniform prior."""

    def evaluate(root):
        left = root["state", "left"].tolist()
        value = torch.tensor([max(values(one, bonus).values()) if one else 0.0 for one in left])
        mask = root["action_mask"].float()
        return mask / mask.sum(-1, keepdim=True), value

    return evaluate


def every_start(env):
    """One game per number of tokens and player."""
    left = torch.arange(1, MOST + 1).repeat(2)
    player = torch.arange(2).repeat_interleave(MOST)
    step = torch.zeros_like(left)
    state = TensorDict({"left": left, "player": player, "step": step}, [2 * MOST])
    return TensorDict({"state": state}, [2 * MOST])


@pytest.mark.parametrize(
    ("actions", "simulations", "plan"),
    [
        (1, 4, (0, 1, 2, 3)),
        (2, 5, (0, 0, 1, 1, 2)),
        (4, 8, (0, 0, 0, 0, 1, 1, 2, 2)),
        (8, 16, (0,) * 8 + (1,) * 4 + (2, 2, 3, 3)),
        (3, 2, (0, 0)),
    ],
)
def test_simulations_are_spent_in_halving_rounds(actions, simulations, plan):
    assert halving_plans(8, simulations)[actions] == plan


def test_visits_at_the_root_follow_the_plan():
    env = TokensEnv(TokensConfig(), num_envs=1)
    root = every_start(env)
    tree = GumbelSearch(env, exact(), simulations=12, considered=3).search(root["state"])
    legal = (tree.prior[:, 0] >= 0).sum(-1)
    visits = tree.visits[:, 0].sort(-1, descending=True).values[:, :3]
    assert visits.sum(-1).eq(12).all()
    # Two halvings of three actions: two rounds with all, then all that is left with two.
    assert visits[legal == 3].tolist() == [[5.0, 5.0, 2.0]] * int((legal == 3).sum())
    assert visits[legal == 2].tolist() == [[6.0, 6.0, 0.0]] * int((legal == 2).sum())


@pytest.mark.parametrize(("bonus", "simulations"), [(0.0, 3), (0.3, 3), (0.0, 40)])
def test_with_exact_values_the_best_move_is_played_by_both_players(bonus, simulations):
    env = TokensEnv(TokensConfig(bonus=bonus), num_envs=1)
    found = GumbelSearch(env, exact(bonus), simulations=simulations, considered=3)(every_start(env))
    assert _is_best(found, bonus)
    for left, value in zip(found["state", "left"].tolist(), found["search_value"].tolist(), strict=True):
        best = max(values(left, bonus).values())
        assert value * best > 0
        assert simulations > 3 or value == pytest.approx(best, abs=1e-4)


def test_without_any_opinion_enough_simulations_solve_the_game():
    env = TokensEnv(TokensConfig(), num_envs=1)
    uniform = lambda root: (exact()(root)[0], torch.zeros(len(root["state"])))  # noqa: E731
    assert _is_best(GumbelSearch(env, uniform, simulations=250, considered=3)(every_start(env)), 0.0)
    assert _is_best(MCTS(env, uniform, simulations=250)(every_start(env)), 0.0)


@pytest.mark.parametrize("fault", ["alternates", "own"])
def test_a_wrong_sign_would_show(monkeypatch, fault):
    """Planted faults: every value is taken as the mover's own, or players are thought to alternate."""
    env = TokensEnv(TokensConfig(), num_envs=1)
    if fault == "own":
        monkeypatch.setattr("edgewise.search.tree.sign", lambda player: torch.ones_like(player).float())
    else:
        rules = env.advance

        def alternating(state, action):
            moved = rules(state, action)
            moved.state["player"] = 1 - state["player"]
            return moved

        monkeypatch.setattr(env, "advance", alternating)
    assert not _is_best(GumbelSearch(env, exact(), simulations=40, considered=3)(every_start(env)), 0.0)


def test_the_improved_policy_is_better_than_the_prior_even_with_two_simulations():
    """With noise: the mean result of the played action is at least that of the prior, in every position."""
    env, bonus = TokensEnv(TokensConfig(), num_envs=1), 0.0
    noise = torch.Generator().manual_seed(0)
    root = torch.cat([every_start(env)] * 60)
    found = GumbelSearch(env, exact(), simulations=2, considered=2, noise=noise)(root)
    left, action = found["state", "left"], found["action"]
    for tokens in range(2, MOST + 1):
        known = values(tokens, bonus)
        played = [known[one] for one in action[left == tokens].tolist()]
        prior = sum(known.values()) / len(known)
        assert sum(played) / len(played) > prior or len(set(known.values())) == 1
        policy = found["search_policy"][left == tokens]
        improved = (policy[:, : len(known)] * torch.tensor(list(known.values()))).sum(-1).mean()
        assert improved >= prior - 1e-6
        assert (policy[:, len(known) :] == 0).all(), "illegal actions"
    assert found["search_policy"].sum(-1).allclose(torch.ones(len(root)))


def test_noise_explores_and_no_noise_does_not():
    env = TokensEnv(TokensConfig(), num_envs=1)
    root = torch.cat([every_start(env)[MOST - 1 : MOST]] * 64)
    still = lambda root: (exact()(root)[0], torch.zeros(len(root["state"])))  # noqa: E731
    calm = GumbelSearch(env, still, simulations=2, considered=2)(root.copy())["action"]
    noise = torch.Generator().manual_seed(0)
    wild = GumbelSearch(env, still, simulations=2, considered=2, noise=noise)(root.copy())["action"]
    assert len(calm.unique()) == 1
    assert len(wild.unique()) == 3


def opinion(root):
    """Opinions that differ from state to state, without any sense."""
    code = root["state", "left"] * 1.3 + root["state", "player"] * 0.7
    return (torch.arange(MOST) * 0.9 + code.unsqueeze(-1)).cos().exp(), 0.8 * code.sin()


class Plain:
    """Gumbel search of one game without noise, with nodes as objects and results handed up by recursion."""

    def __init__(self, env, state, *, scale):
        self.env, self.state, self.scale = env, state, scale
        self.mover = int(state["player"])
        self.legal = env.mask(state)[0].nonzero().flatten().tolist()
        chances, value = opinion({("state", name): state[name] for name in ("left", "player")})
        self.prior, self.value = chances[0].tolist(), float(value)
        self.visits, self.total = dict.fromkeys(self.legal, 0), dict.fromkeys(self.legal, 0.0)
        self.children = {}

    def values(self):
        """Means of the tried actions; the others have the node's own value, mixed with those means."""
        tried = {action: self.total[action] / self.visits[action] for action in self.visited()}
        count, weight = sum(self.visits.values()), sum(self.prior[action] for action in tried)
        mean = sum(self.prior[action] * value for action, value in tried.items()) / weight if tried else 0.0
        mixed = (self.value + count * mean) / (1 + count)
        return {action: tried.get(action, mixed) for action in self.legal}

    def visited(self):
        return [action for action in self.legal if self.visits[action]]

    def logits(self):
        scale = (VISIT_OFFSET + max(self.visits.values())) * self.scale
        return {
            action: math.log(self.prior[action]) + scale * value for action, value in self.values().items()
        }

    def policy(self):
        logits = self.logits()
        total = sum(map(math.exp, logits.values()))
        return {action: math.exp(value) / total for action, value in logits.items()}

    def simulate(self, action=None):
        """The result of one simulation, in this mover's view."""
        if action is None:
            policy, count = self.policy(), 1 + sum(self.visits.values())
            action = max(self.legal, key=lambda each: policy[each] - self.visits[each] / count)
        moved = self.env.advance(self.state, torch.tensor([action]))
        result = float(moved.reward)
        if not bool(moved.terminated):
            child = self.children.get(action)
            if child is None:
                after = self.state.copy().update(dict(moved.state.items()))
                child = self.children[action] = Plain(self.env, after, scale=self.scale)
                deeper = child.value
            else:
                deeper = child.simulate()
            result += deeper if child.mover == self.mover else -deeper
        self.visits[action] += 1
        self.total[action] += result
        return result

    def run(self, plan):
        for visits in plan:
            logits = self.logits()
            self.simulate(max((a for a in self.legal if self.visits[a] == visits), key=logits.get))


def test_trees_are_those_of_a_plain_search_of_each_game():
    """With rewards on the way, and values that count so little that every prior matters."""
    env, simulations, scale = TokensEnv(TokensConfig(bonus=0.3), num_envs=1), 24, 0.02
    root = every_start(env)[3::2]
    search = GumbelSearch(env, opinion, simulations=simulations, considered=3, value_scale=scale)
    tree, found = search.search(root["state"]), search(root.clone())
    for game in range(len(root)):
        plain = Plain(env, root["state"][game : game + 1], scale=scale)
        plain.run(halving_plans(3, simulations)[len(plain.legal)])
        for action in plain.legal:
            assert int(tree.visits[game, 0, action]) == plain.visits[action]
            assert float(tree.total[game, 0, action]) == pytest.approx(plain.total[action], abs=1e-4)
        policy, values = plain.policy(), plain.values()
        expected = torch.tensor([policy.get(action, 0.0) for action in range(MOST)])
        torch.testing.assert_close(found["search_policy"][game], expected, atol=1e-5, rtol=1e-4)
        mean = sum(policy[action] * values[action] for action in plain.legal)
        assert float(found["search_value"][game]) == pytest.approx(mean, abs=1e-4)


def test_one_simulation_plays_a_sample_of_the_prior():
    env, prior = TokensEnv(TokensConfig(), num_envs=1), torch.tensor([0.7, 0.2, 0.1])
    root = torch.cat([every_start(env)[MOST - 1 : MOST]] * 4000)
    chances = torch.cat((prior, torch.zeros(MOST - 3)))
    sure = lambda root: (chances.expand(len(root["state"]), MOST), torch.zeros(len(root["state"])))  # noqa: E731
    noise = torch.Generator().manual_seed(0)
    played = GumbelSearch(env, sure, simulations=1, considered=3, noise=noise)(root)["action"]
    torch.testing.assert_close(played.bincount(minlength=3) / 4000, prior, atol=0.03, rtol=0.0)


def test_a_root_considers_at_least_one_action():
    with pytest.raises(ValueError, match="considered must be at least 1"):
        GumbelSearch(TokensEnv(TokensConfig(), num_envs=1), exact(), simulations=2, considered=0)


def _is_best(found, bonus):
    rows = zip(found["state", "left"].tolist(), found["action"].tolist(), strict=True)
    return all(values(left, bonus)[action] == max(values(left, bonus).values()) for left, action in rows)
