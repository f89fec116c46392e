"""The share of returns that counts: all, a fixed share, or less the nearer an object is."""

import torch
from tests.models.views import random_view

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy_config import DistributionalConfig
from edgewise.algorithms.risk import tail_share
from edgewise.graphs.actions import AgentsDiscrete
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.config import EgoConfig


def test_the_share_follows_the_nearest_object():
    view = random_view(3)
    view["mask"][:] = False
    view["mask"][:2, 2] = True
    view["objects"][0, 2] = torch.tensor([8.8, 0.0, 0.0, 0.0, 1.0])
    view["objects"][1, 2] = torch.tensor([0.5, 0.0, 0.0, 0.0, 1.0])
    deciders = Deciders(AgentsDiscrete(1, 2), EgoConfig(radius=2.8), ego=EgoSpec(), per_agent=True)
    shares = {
        risk: tail_share(view, DistributionalConfig(risk=risk, risk_alpha=0.1), deciders)
        for risk in ("mean", "cvar", "adaptive")
    }
    torch.testing.assert_close(shares["adaptive"], torch.tensor([0.5, 0.1, 1.0]))
    torch.testing.assert_close(shares["cvar"], torch.full((3,), 0.1))
    assert shares["mean"] is None
