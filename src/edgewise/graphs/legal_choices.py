"""List the legal actions of layouts in which an action is one choice, for forced first actions and beams."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.spec import GraphSpec


def legal_choices(layout: ActionLayout, observation: TensorDictBase, graph: GraphSpec) -> Tensor | None:
    """Return which choices are legal in every world, `[*B, C]` bool; choice c is the action c.

    Args:
        layout: action layout of the environment.
        observation: batch size `[*B]`, with what the layout reads.
        graph: shape of the graphs.

    Returns:
        The legal choices; None if an action of this layout is not one choice but a vector, a set or one per
        agent, so that legal actions cannot be listed.

    Example:
        >>> import edgewise as ew
        >>> env = ew.make_env("graphwalk", num_envs=4, seed=0, num_nodes=6)
        >>> legal_choices(env.actions, env.reset(), env.graph).shape
        torch.Size([4, 6])
    """
    choices = layout.choices(observation, graph)
    if choices is None or choices.legal.dim() != len(observation.batch_size) + 1:
        return None
    return choices.legal


def take_in_order(priority: Tensor, legal: Tensor, count: int) -> Tensor:
    """Return `count` legal choices of every world, the highest priority first, `[*B, count]` int64.

    A world with fewer legal choices repeats them, from its first one on.

    Args:
        priority: `[*B, C]`, finite.
        legal: `[*B, C]` bool, at least one of each world.
        count: number of choices.
    """
    order = priority.masked_fill(~legal, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    place = torch.arange(count, device=legal.device) % legal.sum(-1, keepdim=True)
    return order.gather(-1, place)
