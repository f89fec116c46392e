"""A world small enough to be played by hand: it ends after a drawn number of steps and pays drawn rewards."""

import torch
from tensordict import TensorDict
from torchrl.data import Binary, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase


class Countdown(EnvBase):
    """Each world counts down from a drawn number; the reward is the action plus noise drawn for all at once.

    Worlds with an even start end as terminated, others as truncated. With `agents`, agent a leaves after
    a + 1 steps and the last is padding. With `two_players`, players alternate.
    """

    name = "countdown"

    def __init__(self, *, num_envs=1, seed=None, agents=0, two_players=False, longest=40):
        super().__init__(batch_size=[num_envs])
        self.agents, self.two_players, self.longest = agents, two_players, longest
        self.generator = torch.Generator().manual_seed(seed or 0)
        lead, who = (num_envs,), (num_envs, agents) if agents else (num_envs,)
        flag = Binary(shape=(*lead, 1), dtype=torch.bool)
        self.done_spec = Composite(done=flag, terminated=flag.clone(), truncated=flag.clone(), shape=lead)
        self.reward_spec = Unbounded((*who, 1))
        self.action_spec = Categorical(5, shape=who)
        whole = Unbounded(lead, dtype=torch.int64)
        state = Composite(
            left=whole, start=whole.clone(), step=whole.clone(), total=Unbounded(lead), shape=lead
        )
        metrics = Composite(total=Unbounded(lead), success=Unbounded(lead), shape=lead)
        self.observation_spec = Composite(state=state, metrics=metrics, shape=lead)
        if agents:
            self.observation_spec["agents"] = Composite(
                active=Binary(shape=who, dtype=torch.bool), shape=lead
            )
        if two_players:
            self.observation_spec["player"] = whole.clone()

    def _set_seed(self, seed):
        self.generator.manual_seed(seed)

    def state_dict(self):
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.generator.set_state(state["generator"])

    def _observe(self, state):
        success = (state["start"] % 2 == 0) & (state["left"] == 0)
        metrics = TensorDict({"total": state["total"], "success": success.float()}, self.batch_size)
        observation = TensorDict({"state": state, "metrics": metrics}, self.batch_size)
        if self.agents:
            leaving = torch.arange(self.agents) + 1
            active = state["step"].unsqueeze(-1) < leaving
            active[:, -1] = False
            observation["agents"] = TensorDict({"active": active}, self.batch_size)
        if self.two_players:
            observation["player"] = state["step"] % 2
        return observation

    def _reset(self, tensordict=None, **_):
        start = torch.randint(1, self.longest + 1, self.batch_size, generator=self.generator)
        zeros = torch.zeros_like(start)
        state = TensorDict(
            {"left": start, "start": start, "step": zeros, "total": zeros.float()}, self.batch_size
        )
        done = torch.zeros(*self.batch_size, 1, dtype=torch.bool)
        flags = {"done": done, "terminated": done.clone(), "truncated": done.clone()}
        return self._observe(state).update(flags)

    def _step(self, tensordict):
        state = tensordict["state"]
        if not bool((state["left"] > 0).all()):
            raise AssertionError("a finished world was stepped past its end")
        noise = torch.randn(*tensordict["action"].shape, generator=self.generator)
        reward = tensordict["action"] + noise
        left = state["left"] - 1
        total = state["total"] + (reward.sum(-1) if self.agents else reward)
        after = TensorDict(
            {"left": left, "start": state["start"], "step": state["step"] + 1, "total": total},
            self.batch_size,
        )
        even = state["start"] % 2 == 0
        flags = {"done": left == 0, "terminated": (left == 0) & even, "truncated": (left == 0) & ~even}
        flags = {name: flag.unsqueeze(-1) for name, flag in flags.items()}
        return self._observe(after).update({"reward": reward.unsqueeze(-1), **flags})


def by_hand(*, episodes, seed, longest=40, shape=(), action=2, steps=40):
    """Starts `[E]` and rewards `[steps, E, *shape]` of the worlds, drawn as the environment draws them."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randint(1, longest + 1, (episodes,), generator=generator)
    rewards = [action + torch.randn(episodes, *shape, generator=generator) for _ in range(steps)]
    return start.tolist(), torch.stack(rewards).double()


def always(action):
    """The policy that does one thing."""

    def policy(tensordict):
        active = tensordict.get(("agents", "active"), None)
        shape = tensordict.batch_size if active is None else active.shape
        return tensordict.set("action", torch.full(shape, action))

    return policy
