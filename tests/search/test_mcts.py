"""Looking ahead: the same trees as a plain search of one game, and perfect play where it suffices."""

import math

import pytest
import torch
from tensordict import TensorDict

from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.search.mcts import EXPLORATION, MCTS
from edgewise.systems.hex.baselines import mcts, random_player
from edgewise.systems.hex.exact import best_response


def judge(root):
    """Opinions that differ from board to board and from mover to mover, without any sense."""
    stones, player = root["state", "stones"].double(), root["player"].double()
    size = stones.shape[-1]
    code = stones @ torch.arange(1.0, size + 1, dtype=torch.float64).sqrt() + player
    chances = (torch.arange(size) * 0.7 + code.unsqueeze(-1)).cos().exp()
    return chances.float(), code.sin().float()


def no_opinion(root):
    return torch.ones_like(root["action_mask"]).float() / 9, torch.zeros(len(root["player"]))


class Plain:
    """PUCT for one game, with nodes as objects and results handed up by recursion."""

    def __init__(self, env, state, *, over=None):
        self.env, self.state, self.over = env, state, over
        self.mover = int(state["player"])
        self.legal = env.mask(state)[0].nonzero().flatten().tolist()
        if over is None:
            seen = {**dict(env.observe(state).items()), "state": state, "action_mask": env.mask(state)}
            chances, value = judge(TensorDict(seen, [1]))
            self.prior, self.value = chances[0].tolist(), float(value)
        self.visits = dict.fromkeys(self.legal, 0)
        self.total = dict.fromkeys(self.legal, 0.0)
        self.children = {}

    def choice(self):
        tried = sum(self.visits.values())
        mean = (self.value + sum(self.total.values())) / (1 + tried)

        def score(action):
            visits = self.visits[action]
            result = self.total[action] / visits if visits else mean
            return result + EXPLORATION * self.prior[action] * math.sqrt(1 + tried) / (1 + visits)

        return max(self.legal, key=score)

    def descend(self):
        """Count visits from here to a new action or to the end of the game; return the nodes and actions."""
        action = self.choice()
        self.visits[action] += 1
        child = self.children.get(action)
        goes_on = child is not None and child.over is None
        return [(self, action), *(child.descend() if goes_on else [])]

    @staticmethod
    def finish(path):
        """Evaluate what the path has led to, and add the result to the totals of its actions."""
        node, action = path[-1]
        if action not in node.children:
            moved = node.env.advance(node.state, torch.tensor([action]))
            after = node.state.copy().update(dict(moved.state.items()))
            over = float(moved.reward) if bool(moved.terminated) else None
            node.children[action] = Plain(node.env, after, over=over)
        child = node.children[action]
        judged = child if child.over is None else node
        result = child.value if child.over is None else child.over
        for above, taken in path:
            above.total[taken] += result if above.mover == judged.mover else -result


@pytest.mark.parametrize("at_once", [1, 7])
@pytest.mark.parametrize("swap", [False, True])
def test_trees_are_those_of_a_plain_search_of_each_game(swap, at_once):
    """Simulations that are made together see each other's visits, and not each other's results."""
    env = make_env("hex", size=(2, 4), opening_plies=(0, 5), swap=swap, num_envs=6, seed=3)
    root = env.reset()
    tree = MCTS(env, judge, simulations=60, at_once=at_once).search(root["state"])
    one = make_env("hex", size=(2, 4), swap=swap, num_envs=1)
    for game in range(6):
        plain = Plain(one, root["state"][game : game + 1])
        for first in range(0, 60, at_once):
            for path in [plain.descend() for _ in range(first, min(first + at_once, 60))]:
                Plain.finish(path)
        found = tree.visits[game, 0]
        assert {action: int(found[action]) for action in plain.legal} == plain.visits
        assert found.sum() == 60
        for action, total in plain.total.items():
            assert float(tree.total[game, 0, action]) == pytest.approx(total, abs=1e-4)


def test_enough_looking_ahead_is_perfect_play_without_any_opinion():
    env = make_env("hex", size=2)
    assert best_response(env, MCTS(env, no_opinion, simulations=60), size=2).perfect
    assert not best_response(env, MCTS(env, no_opinion, simulations=1), size=2).perfect


def test_a_result_told_with_the_wrong_sign_is_found_out(monkeypatch):
    """The planted fault: every mover takes a result for its own."""
    monkeypatch.setattr("edgewise.search.tree.sign", lambda player: torch.ones_like(player).float())
    env = make_env("hex", size=2)
    assert not best_response(env, MCTS(env, no_opinion, simulations=60), size=2).perfect


def test_the_input_stays_as_it_was():
    env = make_env("hex", size=4, opening_plies=2, num_envs=5, seed=0)
    root = env.reset()
    before = root["state"].clone()
    MCTS(env, judge, simulations=8)(root)
    assert (root["state"] == before).all()


def test_tree_search_beats_random_play():
    env = make_env("hex", size=3, opening_plies=1, num_envs=12, seed=0)
    assert play_match(env, mcts(env), random_player(env), seed=0).score > 0.9


def test_a_search_looks_at_something():
    with pytest.raises(ValueError, match="simulations must be at least 1"):
        MCTS(make_env("hex", size=3), judge, simulations=0)
