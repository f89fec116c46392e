"""Values of actions, for algorithms that learn them: of choices, and of continuous actions."""

from __future__ import annotations

from dataclasses import replace

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torch.nn import functional

from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete, ChooseNode
from edgewise.graphs.keys import ACTIVE, GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import Actor
from edgewise.models.build import make_encoder
from edgewise.models.config import ModelConfig
from edgewise.models.heads import MASK, acting_agents, allowed_nodes, feed_forward


class QNetwork(TensorDictModuleBase):
    """The value of every choice, and the best allowed one: what `DQNLoss` calls.

    Writes `action_value` (`[*B, N]` for nodes, `[*B, A, K]` for agents; a very large negative number where a
    choice is not allowed), `action`, and `chosen_action_value` (`[*B, 1]` or `[*B, A, 1]`). A state
    or agent without an allowed choice, such as a finished game's, has value 0 throughout: losses look at such
    states and drop what they see.

    Args:
        graph: an environment's `graph`.
        actions: an environment's `actions`.
        config: widths; the encoder's above all.
    """

    def __init__(
        self, graph: GraphSpec, actions: ChooseNode | AgentsDiscrete, config: ModelConfig | None = None
    ) -> None:
        super().__init__()
        config = config or ModelConfig()
        self.actions = actions
        self.encoder = make_encoder(graph, config.encoder)
        outputs = actions.num_actions if isinstance(actions, AgentsDiscrete) else 1
        self.value = feed_forward(config.encoder.hidden, config.head_hidden, outputs)
        self.in_keys = [GRAPH, MASK] if isinstance(actions, ChooseNode) else [GRAPH, MASK, ACTIVE]
        self.out_keys = ["action", "action_value", "chosen_action_value"]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Value all choices in every world."""
        values, allowed = self._values(tensordict)
        values = values.masked_fill(~allowed, torch.finfo(values.dtype).min)
        values = values.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
        action = values.argmax(-1)
        tensordict.set("action", action).set("action_value", values)
        return tensordict.set("chosen_action_value", values.gather(-1, action.unsqueeze(-1)))

    def _values(self, tensordict: TensorDict) -> tuple[Tensor, Tensor]:
        """Values and which of them count."""
        h = self.encoder(tensordict.get(GRAPH))
        if isinstance(self.actions, ChooseNode):
            return self.value(h).squeeze(-1), allowed_nodes(tensordict)
        acting = acting_agents(tensordict, self.actions.num_agents)
        values = self.value(h[..., : acting.shape[-1], :])
        allowed = acting.unsqueeze(-1).expand_as(values)
        mask = tensordict.get(MASK, None)
        return values, allowed if mask is None else allowed & mask


class ActionCritic(TensorDictModuleBase):
    """The value of what the agents do, `state_action_value [*B, A, 1]`: what `SACLoss` and `DDPGLoss` call.

    Actions join the agents' node features before the encoder, so that an agent's value knows what its
    neighbours do.

    Args:
        graph: an environment's `graph`.
        actions: an environment's `actions`.
        config: widths; the encoder's above all.
    """

    def __init__(
        self, graph: GraphSpec, actions: AgentsContinuous, config: ModelConfig | None = None
    ) -> None:
        super().__init__()
        config = config or ModelConfig()
        self.actions = actions
        wider = replace(graph, node_features=graph.node_features + actions.dim)
        self.encoder = make_encoder(wider, config.encoder)
        self.value = feed_forward(config.encoder.hidden, config.head_hidden, 1)
        self.in_keys = [GRAPH, ACTIVE, "action"]
        self.out_keys = ["state_action_value"]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Value the joint action of every world."""
        graph, action = tensordict.get(GRAPH).copy(), tensordict.get("action")
        agents, nodes = action.shape[-2], graph["x"].shape[-2]
        padded = functional.pad(action.to(graph["x"].dtype), (0, 0, 0, nodes - agents))
        graph.set("x", torch.cat((graph["x"], padded), -1))
        value = self.value(self.encoder(graph)[..., :agents, :])
        exists = graph["node_mask"][..., :agents]
        return tensordict.set("state_action_value", value.masked_fill(~exists.unsqueeze(-1), 0.0))


class DeterministicActor(TensorDictModuleBase):
    """An actor's mode with its gradient, without log-probability: the policy of `DDPGLoss`.

    Args:
        actor: an actor of continuous actions, whose weights are shared.
    """

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor
        self.in_keys, self.out_keys = list(actor.in_keys), ["action"]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """The most typical action in every world."""
        return tensordict.set("action", self.actor.get_dist(tensordict).mode)
