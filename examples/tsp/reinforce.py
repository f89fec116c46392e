"""An algorithm of one's own: `edgewise train tsp.py --algorithm reinforce.py:Reinforce`."""

import torch

import edgewise as ew


class ReinforceConfig(ew.Config):
    """Settings of REINFORCE."""

    learning_rate: float = 1e-3
    """Learning rate of Adam, for actor and critic."""
    entropy_coefficient: float = 0.01
    """Weight of the entropy bonus."""


class Reinforce(ew.Algorithm):
    """REINFORCE with a learned baseline (Williams 1992), on the steps of episodes that end within the batch.

    Args:
        model: the actor and the critic.
        config: see `ReinforceConfig`.
    """

    config_class = ReinforceConfig

    def __init__(self, model, config):
        self.model, self.config = model, config
        self.optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)

    @classmethod
    def from_setup(cls, setup):
        """Build the algorithm for a run."""
        return cls(setup.make_model().to(setup.device), setup.config)

    @property
    def policy(self):
        """The policy that collects and is evaluated."""
        return self.model.actor

    def learn(self, batch):
        """Make one step on a batch `[num_envs, T]`, and return its metrics."""
        returns, is_known = returns_to_go(batch["next", "reward"], batch["next", "done"])
        distribution, value = self.model.evaluate(batch)
        advantage = (returns - value.detach()).squeeze(-1)
        log_prob, entropy = distribution.log_prob(batch["action"]), distribution.entropy()
        weight = is_known.squeeze(-1) / is_known.sum().clamp(min=1)
        policy_loss = -(advantage * log_prob * weight).sum()
        value_loss = ((value - returns).square().squeeze(-1) * weight).sum()
        entropy = (entropy * weight).sum()
        self.optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss - self.config.entropy_coefficient * entropy).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        metrics = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        return {name: value.detach() for name, value in metrics.items()}

    def state_dict(self):
        """Return everything that the next `learn` depends on."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        """Restore what `state_dict` returned."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def returns_to_go(reward, done):
    """Return the rewards `[B, T, 1]` from each step to the end of its episode, and where that is known."""
    returns, is_known = torch.zeros_like(reward), torch.zeros_like(done)
    later, is_later_known = torch.zeros_like(reward[:, 0]), torch.zeros_like(done[:, 0])
    for step in reversed(range(reward.shape[1])):
        later = reward[:, step] + later * ~done[:, step]
        is_later_known = done[:, step] | is_later_known
        returns[:, step], is_known[:, step] = later, is_later_known
    return returns, is_known
