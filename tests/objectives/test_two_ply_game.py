"""A game of two plies whose values are known: advantages must have the right sign for both players.

The first player turns left or right, then the second takes one of two outcomes, in its own view -1 or -1/2
after left, 1 or 1/2 after right. Both choose at random, so the position after left is worth -3/4 to its
mover, the one after right 3/4, and the beginning nothing. To turn left is good for who turns, right is bad;
and of two outcomes the higher one is good.
"""

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule

from edgewise.objectives.graph_gae import GraphGAE

START, LEFT, RIGHT, OVER = range(4)
WORTH = torch.tensor([0.0, -0.75, 0.75, 50.0])
"""To the mover; the end is never valued, so that whoever values it is far off."""
GAMES = [(LEFT, -1.0), (LEFT, -0.5), (RIGHT, 1.0), (RIGHT, 0.5)]
RIGHT_SIGNS = torch.tensor([[1, -1], [1, 1], [-1, 1], [-1, -1]])
"""Of the advantage of each ply of each game, in its mover's view."""


def played(first):
    """Every game there is, `[4, 2]`, begun by player `first`."""
    turned, outcome = torch.tensor([game[0] for game in GAMES]), torch.tensor([game[1] for game in GAMES])
    place = torch.stack((torch.full((4,), START), turned), -1)
    after = torch.stack((turned, torch.full((4,), OVER)), -1)
    reward = torch.stack((torch.zeros(4), outcome), -1)
    over = torch.tensor([[False, True]]).expand(4, 2).unsqueeze(-1)
    mover = torch.tensor([[first, 1 - first]]).expand(4, 2)
    following = {"place": after, "reward": reward.unsqueeze(-1), "player": 1 - mover}
    following |= {"done": over, "terminated": over}
    return TensorDict({"place": place, "player": mover, "next": following}, [4, 2])


def advantages(rollout, *, two_player=True, lmbda):
    critic = TensorDictModule(
        lambda place: WORTH[place].unsqueeze(-1), in_keys=["place"], out_keys=["state_value"]
    )
    gae = GraphGAE(value_network=critic, gamma=1.0, lmbda=lmbda, two_player=two_player)
    return gae(rollout)["advantage"].squeeze(-1)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("lmbda", [0.0, 0.9, 1.0])
def test_advantages_have_the_right_sign_for_both_players(first, lmbda):
    assert torch.equal(advantages(played(first), lmbda=lmbda).sign(), RIGHT_SIGNS.float())


@pytest.mark.parametrize("lmbda", [0.0, 0.9, 1.0])
def test_one_player_in_both_seats_is_found_out(lmbda):
    """Two planted faults: the next mover's value taken for one's own, and a mover that never changes."""
    first_ply = -RIGHT_SIGNS[:, 0].float()
    one_view = advantages(played(0), two_player=False, lmbda=lmbda)
    assert torch.equal(one_view[:, 0].sign(), first_ply)
    same = played(0)
    same["player"] = torch.zeros_like(same["player"])
    same["next", "player"] = torch.zeros_like(same["player"])
    assert torch.equal(advantages(same, lmbda=lmbda)[:, 0].sign(), first_ply)


def test_sizes_are_those_of_the_definition():
    """Without traces: left gains 3/4 for who turns, and outcomes lie 1/4 about their mean."""
    expected = [[0.75, -0.25], [0.75, 0.25], [-0.75, 0.25], [-0.75, -0.25]]
    assert advantages(played(1), lmbda=0.0).tolist() == expected
