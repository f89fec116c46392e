"""Max-cut: divide the nodes so that much weight lies between the two sides."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.problems.config import MaxCutConfig
from edgewise.problems.random_graphs import SelectionEnv, rule


class MaxCutEnv(SelectionEnv[MaxCutConfig]):
    """Choose a node and move it to the other side; the reward is by how much the cut exceeds the best so far.

    Every flip can be taken back, so an episode is a local search, and its result is the best cut on the way.
    """

    static_features = 2
    edge_features = 1

    def begin(self, graphs: dict[str, Tensor]) -> Entries:
        """Sample weights, and the sides that nodes begin on."""
        signs = 1.0 - 2.0 * torch.randint(
            2, graphs["adjacent"].shape, generator=self.generator, device=self.device
        )
        upper = (signs if self.config.signs else torch.ones_like(signs)).triu(1)
        weight = (upper + upper.mT) * graphs["adjacent"]
        exists = graphs["exists"]
        side = 1.0 - 2.0 * torch.randint(2, exists.shape, generator=self.generator, device=self.device)
        gain = (weight @ side.unsqueeze(-1)).squeeze(-1) * side
        degree = weight.abs().sum(-1)
        cut = (weight.sum((1, 2)) - gain.sum(-1)) / 4
        return {
            **graphs,
            "weight": weight,
            "scale": (degree.sum(-1) / exists.sum(-1)).clamp(min=1.0).sqrt(),
            "side": side,
            "gain": gain,
            "age": torch.full(exists.shape, exists.shape[1], device=self.device),
            "cut": cut,
            "best": cut.clone(),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Flip the chosen node; only its own gain and those of its neighbours change."""
        row, chosen = torch.arange(len(action), device=action.device), action.unsqueeze(-1)
        old = state["side"].gather(1, chosen)
        gained = state["gain"].gather(1, chosen)
        gain = state["gain"] - 2 * state["weight"][row, action] * state["side"] * old
        cut = state["cut"] + gained.squeeze(-1)
        best = torch.maximum(cut, state["best"])
        changes = {
            "side": state["side"].scatter(1, chosen, -old),
            "gain": gain.scatter(1, chosen, -gained),
            "age": (state["age"] + 1).scatter(1, chosen, 0),
            "cut": cut,
            "best": best,
        }
        limit = self.config.steps_per_node * state["exists"].sum(-1)
        is_last = state["step"] + 1 >= limit
        return Transition(changes, reward=(best - state["best"]) / state["scale"], truncated=is_last)

    def describe(self, state: TensorDict) -> Entries:
        """Return the graph with weights, and the sums of positive and negative ones at each node."""
        row = torch.arange(len(state["weight"]), device=state["weight"].device).unsqueeze(-1)
        weight = state["weight"][row, state["edge_index"][:, 0], state["edge_index"][:, 1]]
        scale = state["scale"].view(-1, 1)
        sums = [state["weight"].clamp(min=0).sum(-1), -state["weight"].clamp(max=0).sum(-1)]
        x = torch.stack([part / scale.square() for part in sums], -1)
        return self.described(state, x, edge_attr=weight.unsqueeze(-1))

    def observe(self, state: TensorDict) -> Entries:
        """Show gains in units of the root of the mean degree, so that graphs of all sizes look alike.

        Nothing depends on which of the two sides a node is on: exchanging the sides gives the same cut.
        """
        scale, exists = state["scale"].unsqueeze(-1), state["exists"]
        gain, behind = state["gain"] / scale, (state["best"] - state["cut"]).unsqueeze(-1) / scale
        highest = gain.masked_fill(~exists, -torch.inf).amax(-1, keepdim=True)
        age = state["age"].float()
        x = torch.stack(
            (
                gain,
                gain - highest,
                (gain > behind).float(),
                (age / exists.sum(-1, keepdim=True)).clamp(max=2.0),
                (age < 2).float(),
                (age < 8).float(),
            ),
            -1,
        )
        progress = state["step"].unsqueeze(-1) / (self.config.steps_per_node * exists.sum(-1, keepdim=True))
        u = torch.cat((behind, (highest > 0).float(), progress), -1)
        return {"step": {"x": x, "u": u}, "metrics": {"cut": state["best"]}}


Rule = Callable[[TensorDict], TensorDict]


def steepest(env: MaxCutEnv) -> Rule:  # noqa: ARG001
    """Return the rule that flips the node with the highest gain, even if all gains are negative."""
    return rule(lambda state: state["gain"])


def tabu(env: MaxCutEnv, *, rest: int = 10) -> Rule:  # noqa: ARG001
    """Return tabu search: the highest gain of the nodes that were not flipped within the last steps.

    A node that would give the best cut so far may always be flipped.

    Args:
        env: whose graphs are cut.
        rest: steps for which a node rests; fewer in graphs of fewer than twice as many nodes.
    """

    def score(state: TensorDict) -> Tensor:
        steps = state["exists"].sum(-1, keepdim=True).div(2).clamp(max=rest)
        better = state["cut"].unsqueeze(-1) + state["gain"] > state["best"].unsqueeze(-1)
        resting = (state["age"] < steps) & ~better
        lowest = torch.finfo(state["gain"].dtype).min / 2
        return state["gain"].masked_fill(resting, lowest)

    return rule(score)


BASELINES = {"steepest": steepest, "tabu": tabu}
