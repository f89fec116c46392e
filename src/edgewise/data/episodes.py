"""Collect whole episodes, several of each instance, for algorithms that learn from returns of episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.data.instance_batch import cat_instance_batches, is_instance_batch, make_instance_batch
from edgewise.data.random_policy import RandomPolicy
from edgewise.data.rollout import acting
from edgewise.envs.policy import Policy, encode_once
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.keys import ACTIVE, CHOICES, GRAPH, MASK, STATE, STEP, STEPS
from edgewise.graphs.legal_choices import legal_choices, take_in_order
from edgewise.graphs.spec import GraphSpec

INSTANCE = "instance"
"""The instance that a step belongs to, int64; episodes of one instance begin in the same state."""
BASELINE_RETURN = "baseline_return"
"""The return of the baseline policy on the instance of a step."""
PROPOSAL = "proposal"
"""The probability with which a first action was drawn in place of the policy; 0 where the policy acted."""

OUTCOME = ("reward", "done", "terminated", "truncated", "metrics")
"""Entries of `next` that are kept: whole episodes need no next observation."""
CHECK_EVERY = 16
"""Steps between checks whether all episodes have ended, on devices where a check synchronises."""


class World(Protocol):
    """The part of a `GraphEnv` that is used here."""

    graph: GraphSpec
    actions: ActionLayout
    generator: torch.Generator
    num_envs: int
    num_symmetries: int
    max_steps: int | None
    device: torch.device

    def reset(self) -> TensorDictBase:
        """Return the root of new worlds, `[num_envs]`."""

    def new_worlds(self, count: int) -> TensorDict:
        """Return the roots of `count` new worlds."""

    def under_symmetries(self, root: TensorDictBase, symmetry: Tensor) -> TensorDict:
        """Return the roots of worlds, each under a symmetry."""

    def simulate(self, tensordict: TensorDictBase) -> TensorDict:
        """Return the entries of `next` for any number of worlds."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator and the stage."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""


class BaselineReturns(Protocol):
    """Returns of a baseline policy, which changes while the learner improves."""

    def update(self, env: World) -> None:
        """Update the baseline policy; called before each batch."""

    def __call__(self, env: World, root: TensorDictBase) -> Tensor:
        """Return the return of the baseline policy from every root, `[I]` or `[I, A]`."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that later calls depend on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""

    def metrics(self) -> dict[str, float]:
        """Return numbers for the log."""


class EpisodeRollout:
    """Collects whole episodes of a policy, several of each instance.

    A batch is `[1, M]`: all steps of all episodes one after another, those of one instance together. An
    episode ends where `next.done` is true; a time limit counts as an end. `instance` numbers the instances.
    Observations after a step are not kept. If the environment describes an instance once, the batch stores it
    once, see `data/instance_batch.py`, and the policy encodes it once.

    Args:
        env: a `GraphEnv`; all its state is in the TensorDict, so an instance is a root.
        policy: takes the root TensorDict and sets `action` and any entries to keep.
        rollout_length: minimum number of steps of every world in a batch; rounds of whole episodes are
            added until it is reached.
        starts: episodes of each instance; at most the number of worlds.
        different: whether these begin with different actions, drawn uniformly from the legal ones; their
            probability is in `proposal`.
        symmetries: views of each instance, each under another symmetry, which divide its episodes.
        longest: largest number of steps of an episode, where the environment has no time limit.
        gamma: discount factor of `baseline_return`.
        baseline: gives `baseline_return`; None for none.
        keep_next: whether the observation after a step is kept too, in batches of instances.
        keep_state: whether the simulator's `state` is kept.

    Raises:
        ConfigError: episodes do not end, the worlds are too few, or first actions cannot be listed.

    Example:
        >>> import edgewise as ew
        >>> from edgewise.data.random_policy import RandomPolicy
        >>> env = ew.make_env("graphwalk", num_envs=8, seed=0)
        >>> policy = RandomPolicy(env.actions, env.graph)
        >>> batch = EpisodeRollout(env, policy, rollout_length=1, starts=4).collect()
        >>> batch["next", "done"].sum(), batch["instance"].max() + 1
        (tensor(8), tensor(2))
    """

    def __init__(
        self,
        env: World,
        policy: Policy,
        *,
        rollout_length: int = 1,
        starts: int = 1,
        different: bool = False,
        symmetries: int = 1,
        longest: int = 1000,
        baseline: BaselineReturns | None = None,
        keep_next: bool = False,
        keep_state: bool = False,
    ) -> None:
        self.env, self.policy, self.rollout_length, self.keep_next = env, policy, rollout_length, keep_next
        self.starts, self.different, self.longest = min(starts, env.num_envs), different, longest
        self.baseline, self.symmetries, self.keep_state = baseline, symmetries, keep_state
        if self.starts % symmetries:
            raise ConfigError(
                f"num_envs: got {env.num_envs}, which leaves {self.starts} episodes of an instance to its "
                f"{symmetries} views",
                hint=f"use {starts} worlds or more",
            )
        if symmetries > env.num_symmetries:
            raise ConfigError(
                f"algorithm.symmetries: got {symmetries}, but the environment has {env.num_symmetries} "
                "(`num_symmetries` of its class)",
                hint="leave it out, or give the environment `apply_symmetry`",
            )
        if starts > 1 and env.num_envs < 2:
            raise ConfigError(
                f"num_envs: got {env.num_envs}, expected 2 or more: {starts} episodes of an instance are "
                "played side by side"
            )
        self._check()

    @property
    def num_instances(self) -> int:
        """Instances in a round of episodes."""
        return self.env.num_envs // self.starts

    def collect(self) -> TensorDictBase:
        """Collect the next batch of whole episodes, `[1, M]`, or of instances, `[I]`."""
        if self.baseline is not None:
            self.baseline.update(self.env)
        rounds: list[TensorDictBase] = []
        steps = 0
        while steps < self.rollout_length:
            played, length = self._round(first_instance=len(rounds) * self.num_instances)
            rounds.append(played)
            steps += length
        if self.env.graph.step is not None:
            return cat_instance_batches(rounds)
        return torch.cat(rounds).unsqueeze(0) if len(rounds) > 1 else rounds[0].unsqueeze(0)

    def _round(self, *, first_instance: int) -> tuple[TensorDictBase, int]:
        """Play `starts` episodes of every instance.

        Returns:
            Their steps `[S]`, or the batch of instances `[I]`; and the length of the longest episode.
        """
        instance = torch.arange(self.num_instances, device=self.env.device).repeat_interleave(self.starts)
        described = self.env.graph.step is not None
        count = self.num_instances
        roots = self.env.new_worlds(count) if described else self.env.reset()[:count]
        roots = self._views(roots)
        first, proposal = self._first_actions(roots) if self.different else (None, None)
        known = {INSTANCE: instance + first_instance}
        view = torch.arange(len(roots), device=self.env.device).repeat_interleave(
            self.starts // self.symmetries
        )
        if self.baseline is not None:
            known[BASELINE_RETURN] = self.baseline(self.env, roots)[view]
        with acting(self.policy):
            policy, worlds = encode_once(self.policy, roots)
            steps, counted = play_episodes(
                self.env,
                policy,
                worlds[view],
                first=first,
                proposal=proposal,
                longest=self.longest,
                kept=(*OUTCOME, STEP, MASK, CHOICES) if self.keep_next else OUTCOME,
                keep_state=self.keep_state,
            )
        length = steps.batch_size[1]
        for name, value in known.items():
            steps.set(name, value.unsqueeze(1).expand(len(value), length, *value.shape[1:]))
        if described:
            size = (len(roots), self.starts // self.symmetries * length)
            steps = steps.exclude(GRAPH).reshape(size)
            return make_instance_batch(roots[GRAPH], steps, counted.reshape(size)), length
        return steps[counted], length

    def _views(self, roots: TensorDictBase) -> TensorDictBase:
        """Return the roots of the views of every instance, `[I * symmetries]`."""
        if self.symmetries == 1:
            return roots
        draw = torch.rand(len(roots), self.env.num_symmetries, device=roots["done"].device)
        number = draw.argsort(-1)[:, : self.symmetries].reshape(-1)
        each = torch.arange(len(roots), device=number.device).repeat_interleave(self.symmetries)
        return self.env.under_symmetries(roots[each], number)

    def _first_actions(self, roots: TensorDictBase) -> tuple[Tensor, Tensor]:
        """Return different legal actions of each view of an instance in random order, and their probability.

        Both are of all episodes, `[I * starts]`.
        """
        legal, each = legal_choices(self.env.actions, roots, self.env.graph), self.starts // self.symmetries
        assert legal is not None
        first = take_in_order(torch.rand(legal.shape, device=legal.device), legal, each)
        return first.reshape(-1), (1 / legal.sum(-1)).repeat_interleave(each)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the baseline."""
        return {} if self.baseline is None else self.baseline.metrics()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the environment and of the baseline; no episode is under way."""
        baseline = {} if self.baseline is None else self.baseline.state_dict()
        return {"env": self.env.state_dict(), "baseline": baseline}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next batch is then bit-equal to that of the saved rollout."""
        self.env.load_state_dict(state["env"])
        if self.baseline is not None:
            self.baseline.load_state_dict(state["baseline"])

    @torch.no_grad()
    def _check(self) -> None:
        """Play one episode at random, and raise ConfigError if it does not end or its actions do not fit.

        The environment's generator is restored, so that a run does not depend on this.
        """
        env, before = self.env, self.env.state_dict()
        roots = env.reset()[:1]
        if self.different and legal_choices(env.actions, roots, env.graph) is None:
            raise ConfigError(
                f"algorithm.first_actions: got different, but the actions of {type(env.actions).__name__} "
                "cannot be listed",
                hint="use first_actions sampled",
            )
        if env.max_steps is None:
            play_episodes(env, RandomPolicy(env.actions, env.graph, seed=0), roots, longest=self.longest)
        env.load_state_dict(before)


def play_episodes(
    env: World,
    policy: Callable[[TensorDictBase], TensorDictBase],
    roots: TensorDictBase,
    *,
    first: Tensor | None = None,
    proposal: Tensor | None = None,
    longest: int,
    kept: tuple[str, ...] = OUTCOME,
    keep_state: bool = False,
    observed: bool = True,
) -> tuple[TensorDictBase, Tensor]:
    """Play one episode from every root, without resets.

    A world that is done is kept at its last root while the others continue; these steps do not count.

    Args:
        env: steps the worlds.
        policy: sets `action`.
        roots: `[B]`.
        first: actions of the first step, `[B]`; None for the policy's.
        proposal: the probability with which these were drawn, `[B]`.
        longest: largest number of steps, where the environment has no time limit.
        kept: entries of `next` that are kept.
        keep_state: whether `state` is kept.
        observed: whether steps keep observations and actions, and not only who acted.

    Returns:
        Steps `[B, T]` with root observations, actions and outcomes, and which of them count, `[B, T]` bool.

    Raises:
        ConfigError: an episode does not end.
    """
    limit = env.max_steps or longest
    every = 1 if env.device.type == "cpu" else CHECK_EVERY
    names = [name for name in roots.keys() if name not in OUTCOME]  # noqa: SIM118 - a TensorDict iterates rows
    dropped = OUTCOME if keep_state else (STATE, *OUTCOME)
    root, finished = roots.copy(), torch.zeros(roots.batch_size, dtype=torch.bool, device=env.device)
    steps: list[TensorDictBase] = []
    counted: list[Tensor] = []
    for number in range(limit):
        acted = policy(root.copy())
        if first is not None and proposal is not None:
            acted.set(PROPOSAL, proposal if number == 0 else torch.zeros_like(proposal))
            if number == 0:
                acted.set("action", first)
        following = env.simulate(acted)
        outcome = following.select(*kept, strict=False)
        step = acted.exclude(*dropped) if observed else acted.select(ACTIVE, "player", strict=False)
        steps.append(step.set("next", outcome))
        counted.append(~finished)
        finished = finished | following["done"].squeeze(-1)
        if (number + 1) % every == 0 and bool(finished.all()):
            break
        root = following.select(*names, strict=False)
        if every > 1 or bool(finished.any()):
            root = root.where(~finished, acted.select(*root.keys()))
    else:
        if env.max_steps is None and not bool(finished.all()):
            raise _endless(finished, limit)
    return torch.stack(steps, 1), torch.stack(counted, 1)


def join_shares(batches: list[TensorDictBase]) -> TensorDictBase:
    """Return the batches of several collectors as one, in which every instance has a number of its own."""
    first, numbered = 0, []
    for batch in batches:
        steps = batch.get(STEPS, batch)
        number = steps[INSTANCE] + first
        first = int(number.max()) + 1
        steps = steps.copy().set(INSTANCE, number)
        numbered.append(batch.copy().set(STEPS, steps) if is_instance_batch(batch) else steps)
    if is_instance_batch(batches[0]):
        return cat_instance_batches(numbered)
    return torch.cat(numbered, 1)


def _endless(finished: Tensor, limit: int) -> ConfigError:
    running = int((~finished).sum())
    return ConfigError(
        f"{running} of {len(finished)} episodes did not end within {limit:,} steps, and this algorithm "
        "learns from whole episodes",
        hint="give the environment a time limit, raise algorithm.longest_episode, or use --algorithm ppo",
    )
