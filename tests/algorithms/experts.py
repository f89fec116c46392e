"""Experts for the toys, which read their answers from what is seen, and how to imitate them."""

import torch
from tests.algorithms.worlds import SMALL

from edgewise.algorithms.clone import Clone
from edgewise.algorithms.config import CloneConfig
from edgewise.models.actor_critic import make_actor_critic

SETTINGS = CloneConfig(learning_rate=5e-3, minibatch_size=128, updates=16)


def marked(root):
    """Choose the marked node."""
    return root.set("action", root["graph", "x"].squeeze(-1).argmax(-1))


def signals(root):
    """Every agent follows its signal."""
    return root.set("action", (root["graph", "x"][..., :3, 0] > 0).long())


def dials(root):
    """Every agent turns its dial to its signal."""
    return root.set("action", root["graph", "x"][..., :3, :])


EXPERTS = {"MarkedNode": marked, "Signals": signals, "Dials": dials}


def imitator(env, *, seed=0, config=SETTINGS, model=SMALL, device="cpu"):
    torch.manual_seed(seed)
    expert = EXPERTS[type(env).__name__]
    actor_critic = make_actor_critic(env.graph, env.actions, model)
    return Clone(actor_critic, config, expert=expert, seed=seed, device=device)
