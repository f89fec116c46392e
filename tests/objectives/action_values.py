"""Action-value networks on graphs, for TorchRL's `DQNLoss`, `SACLoss` and `DDPGLoss`.

These losses `vmap` their networks by default, which graph networks do not support: see
`edgewise.objectives.without_vmap`.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torch.nn import functional

from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete, ChooseNode
from edgewise.graphs.keys import ACTIVE, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import Actor
from edgewise.models.build import make_encoder
from edgewise.models.config import ModelConfig
from edgewise.models.heads import acting_agents, allowed_nodes, feed_forward


class QNetwork(TensorDictModuleBase):
    """A Q-network over nodes or over the discrete actions of agents, with a greedy policy.

    Writes `action_value` (`[*B, N]` for nodes, `[*B, A, K]` for agents; a very large negative number for
    masked actions), `action`, and `chosen_action_value` (`[*B, 1]` or `[*B, A, 1]`). All values are 0 in a
    state without a legal action, such as the end of a game: losses evaluate such states and mask the result.

    Args:
        graph: an environment's `graph`.
        actions: an environment's `actions`.
        config: widths, of the encoder above all.

    Example:
        >>> from torchrl.objectives import DQNLoss
        >>> from edgewise.graphs.edges import Explicit
        >>> from edgewise.objectives.without_vmap import without_vmap
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> network = QNetwork(spec, ChooseNode())
        >>> network(TensorDict({"graph": spec.zeros(8)}, [8]))["action_value"].shape
        torch.Size([8, 6])
        >>> loss = without_vmap(DQNLoss(network, action_space="categorical", delay_value=True))
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
        """Compute all action values and the greedy action in every world."""
        values, allowed = self._values(tensordict)
        values = values.masked_fill(~allowed, torch.finfo(values.dtype).min)
        values = values.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
        action = values.argmax(-1)
        tensordict.set("action", action).set("action_value", values)
        return tensordict.set("chosen_action_value", values.gather(-1, action.unsqueeze(-1)))

    def _values(self, tensordict: TensorDict) -> tuple[Tensor, Tensor]:
        """Return the values and the mask of legal actions."""
        h = self.encoder(tensordict.get(GRAPH))
        if isinstance(self.actions, ChooseNode):
            return self.value(h).squeeze(-1), allowed_nodes(tensordict)
        acting = acting_agents(tensordict, self.actions.num_agents)
        values = self.value(h[..., : acting.shape[-1], :])
        allowed = acting.unsqueeze(-1).expand_as(values)
        mask = tensordict.get(MASK, None)
        return values, allowed if mask is None else allowed & mask


class ActionCritic(TensorDictModuleBase):
    """A critic of continuous actions: writes `state_action_value [*B, A, 1]`, for `SACLoss` and `DDPGLoss`.

    Actions are concatenated to the agents' node features before the encoder, so the value of an agent depends
    on the actions of its neighbours.

    Args:
        graph: an environment's `graph`.
        actions: an environment's `actions`.
        config: widths, of the encoder above all.

    Example:
        >>> from edgewise.graphs.edges import Explicit
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> critic = ActionCritic(spec, AgentsContinuous(num_agents=2, dim=1))
        >>> state = TensorDict({"graph": spec.zeros(8), "action": torch.zeros(8, 2, 1)}, [8])
        >>> critic(state)["state_action_value"].shape
        torch.Size([8, 2, 1])
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
        """Compute the value of every agent under the joint action, in every world."""
        graph, action = tensordict.get(GRAPH).copy(), tensordict.get("action")
        agents, nodes = action.shape[-2], graph["x"].shape[-2]
        padded = functional.pad(action.to(graph["x"].dtype), (0, 0, 0, nodes - agents))
        graph.set("x", torch.cat((graph["x"], padded), -1))
        value = self.value(self.encoder(graph)[..., :agents, :])
        exists = graph["node_mask"][..., :agents]
        return tensordict.set("state_action_value", value.masked_fill(~exists.unsqueeze(-1), 0.0))


class DeterministicActor(TensorDictModuleBase):
    """A deterministic policy, the mode of an actor with its gradient, for `DDPGLoss`.

    Args:
        actor: an actor of continuous actions; its weights are shared, not copied.
    """

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor
        self.in_keys, self.out_keys = list(actor.in_keys), ["action"]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Set `action` to the mode of the actor's distribution."""
        return tensordict.set("action", self.actor.get_dist(tensordict).mode)
