"""Turn rollouts into n-step transitions of whole worlds or of single agents, stored in few bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import NestedKey, TensorDict, TensorDictBase
from torch import Tensor

from edgewise.graphs.keys import ACTIVE, EGO, MASK, RESTARTED
from edgewise.graphs.ragged import alike, padded

PLAYER = "player"
CUT = "cut"
"""Steps after which a world was started anew although its episode had not ended, `[B, L]` bool."""
AGENTS_OBSERVE = (EGO, MASK)
"""What single agents observe."""
MAX_STEPS = 127
"""Largest n of an n-step transition, the limit of int8."""


class Transitions:
    """Makes n-step transitions from consecutive batches of a rollout.

    A transition starts at every step of a world, or of an active agent with `per_agent`. It ends after
    `steps` steps, or at the end of the episode of the world or the agent. Transitions that are incomplete at
    the end of a batch are carried over to the next call. In games of two players, rewards count from the view
    of whoever moves first, and `span` is negative if the other player is to move at the end.

    Args:
        observed: entries of the root that networks read.
        per_agent: whether rows are steps of single agents, each with its part of `agents.ego` and of the
            mask, instead of steps of whole worlds.
        bounds: exclusive upper bounds of integer entries, which are stored in as few bytes as possible.
        steps: n, the largest number of steps of a transition.
        discount: γ of one step.
        team_reward: whether to store the sum of the agents' rewards, and terminations of worlds, instead of
            those of every agent.
        paths: whether to store the steps of a transition too, for targets that read them; of worlds only.

    Example:
        >>> import edgewise as ew
        >>> from edgewise.data.random_policy import RandomPolicy
        >>> from edgewise.data.rollout import Rollout
        >>> env = ew.make_env("graphwalk", num_envs=4)
        >>> rollout = Rollout(env, RandomPolicy(env.actions, env.graph), rollout_length=8)
        >>> make = Transitions(["graph", "action_mask"], steps=3, discount=0.99)
        >>> sorted(make.stored(rollout.collect()).keys())
        ['action', 'next_observation', 'observation', 'reward', 'span', 'terminated']
    """

    def __init__(
        self,
        observed: Sequence[NestedKey] = AGENTS_OBSERVE,
        *,
        per_agent: bool = False,
        bounds: Mapping[NestedKey, int] | None = None,
        steps: int = 1,
        discount: float,
        team_reward: bool = False,
        paths: bool = False,
    ) -> None:
        if not 1 <= steps <= MAX_STEPS:
            raise ValueError(f"a transition has 1 to {MAX_STEPS} steps, got {steps}")
        self.observed, self.per_agent, self.bounds = tuple(observed), per_agent, dict(bounds or {})
        self.steps, self.discount, self.team_reward, self.paths = steps, discount, team_reward, paths
        self._carried: TensorDictBase | None = None

    def stored(self, batch: TensorDictBase) -> TensorDict:
        """Return the transitions `[M]` that are complete with this batch `[B, T]`, oldest first.

        It synchronises a GPU once, since M depends on data.

        Returns:
            `observation`, `next_observation`, `action`, `reward` (Σ ± γᵏ r over the steps), `terminated` bool
            and `span [M]` int8, the number of steps m, or -m if the player changes. Reward and termination
            are `[M]`, or `[M, A]` if agents act. Rows of single agents have no `terminated`: their span is -m
            at a termination of the agent or its world. With `paths`, also `rewards [M, n]` or `[M, n, A]` of
            every step, and `path [M, n - 1]`, the steps after the first: `observation`, `action`, and in
            games `sign` int8, -1 where the other player moves. Entries after the last step have no meaning.
        """
        rollout = self._with_carried(self._select(batch))
        terminated = self._terminated(rollout)
        ended = self._ended(rollout, terminated)
        reward, length = self._returns(rollout, ended)
        time = torch.arange(rollout.shape[1], device=length.device)
        last = time.reshape(-1, *(1,) * (length.dim() - 2)) + length - 1
        complete = (length == self.steps) | ended.gather(1, last)
        # Sorted by time first, so that a full ring buffer drops the oldest steps of all worlds.
        when, world, *agent = (rollout["pending"] & complete).transpose(0, 1).nonzero(as_tuple=True)
        here = (world, when, *agent)
        there = (world, last[here], *agent)
        carried = min(self.steps - 1, rollout.shape[1])
        if carried:
            self._carried = rollout[:, -carried:].clone()
            self._carried.set("pending", (rollout["pending"] & ~complete)[:, -carried:].clone())
        span = length[here].to(torch.int8)
        rows = {
            "observation": self._at(rollout, here),
            "next_observation": self._at(rollout["next"], there),
            "action": self._packed("action", rollout["action"][here]),
            "reward": reward[here],
        }
        if self.per_agent:
            rows["span"] = torch.where(terminated[there], -span, span)
        else:
            rows |= {
                "terminated": terminated[there],
                "span": span * self._sign(rollout, here, there),
            }
        if self.paths:
            rows |= self._path(rollout, here, length[here])
        return TensorDict(rows, batch_size=[len(when)], device=rollout.device)

    def expand(self, stored: TensorDictBase) -> TensorDict:
        """Return transitions of the replay buffer as algorithms take them.

        Integers are int64 again, and `discount` (± γᵐ, or 0 at a termination) and `steps` replace `span` and
        `terminated`.
        """
        span = stored["span"]
        discount = powers(self.discount, span.abs())
        if self.per_agent:
            discount = discount * (span > 0)
        else:
            terminated = stored["terminated"]
            discount = (discount * span.sign()).reshape(*span.shape, *(1,) * (terminated.dim() - 1))
            discount = discount * ~terminated
        samples = stored.exclude("span", "terminated")
        for name in ("observation", "next_observation"):
            samples.set(name, stored[name].apply(unpacked))
        samples.set("action", unpacked(stored["action"]))
        if self.paths:
            path = stored["path"].apply(unpacked)
            path.batch_size = [len(span), self.steps - 1]  # a restored buffer knows its first dimension only
            samples.set("path", path)
        return samples.set("discount", discount).set("steps", span.abs())

    def state_dict(self) -> dict[str, Any]:
        """Return the steps of incomplete transitions."""
        return {} if self._carried is None else padded(self._carried).to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps of incomplete transitions."""
        self._carried = None
        if state:
            self._carried = TensorDict(dict(state), batch_size=state["pending"].shape[:2]).clone()

    def _select(self, batch: TensorDictBase) -> TensorDictBase:
        """Return the entries of a rollout that transitions are made of."""
        agents = (ACTIVE,) if self.per_agent else ()
        after = (*self.observed, *agents, PLAYER, "reward", "done", "terminated", ("agents", "terminated"))
        fresh = batch.select(*self.observed, *agents, PLAYER, RESTARTED, "action", strict=False)
        fresh.set("next", batch["next"].select(*after, strict=False))
        if self.per_agent:
            return fresh.set("pending", fresh[ACTIVE])
        flags = torch.zeros(batch.batch_size, dtype=torch.bool, device=batch["next", "done"].device)
        return fresh.set("pending", ~flags).set(CUT, flags)

    def _with_carried(self, fresh: TensorDictBase) -> TensorDictBase:
        """Return carried and fresh steps; worlds that were started anew in between are cut."""
        restarted = fresh.get(RESTARTED, None)
        fresh = fresh.exclude(RESTARTED)
        if self._carried is None:
            return fresh
        carried = alike(self._carried.to(fresh.device), fresh)
        if restarted is not None and not self.per_agent:
            carried[CUT][:, -1] |= restarted[:, 0]
        return TensorDict.cat((carried, fresh), dim=1)

    def _ended(self, rollout: TensorDictBase, terminated: Tensor) -> Tensor:
        """Return where the episode of a world `[B, L]`, or of an agent `[B, L, A]`, is over after a step."""
        done = rollout["next", "done"]
        if self.per_agent:
            return terminated | done | ~rollout["next", *ACTIVE]
        return (done | rollout[CUT].unsqueeze(-1)).squeeze(-1)

    def _returns(self, rollout: TensorDictBase, ended: Tensor) -> tuple[Tensor, Tensor]:
        """Return discounted sums of rewards `[B, L, ...]` from each step on, and their lengths."""
        reward = self._rewards(rollout)
        total, length = torch.zeros_like(reward), torch.zeros_like(ended, dtype=torch.int64)
        running, player = torch.ones_like(ended), rollout.get(PLAYER, None)
        for ahead in range(min(self.steps, ended.shape[1])):
            rest = ended.shape[1] - ahead
            running = running[:, :rest]
            weight = running * self.discount**ahead
            if player is not None:
                weight = torch.where(player[:, ahead:] == player[:, :rest], weight, -weight)
            shaped = weight.reshape(*weight.shape, *(1,) * (reward.dim() - weight.dim()))
            total[:, :rest] += reward[:, ahead:] * shaped
            length[:, :rest] += running
            running = running & ~ended[:, ahead:]
        return total, length

    def _path(self, rollout: TensorDictBase, here: tuple[Tensor, Tensor], length: Tensor) -> dict[str, Any]:
        """Return the rewards of every step, and the steps after the first; see `stored`."""
        world, when = (index.unsqueeze(-1) for index in here)
        ahead = torch.arange(self.steps, device=length.device)
        at = when + ahead.minimum(length.unsqueeze(-1) - 1)
        reward = self._rewards(rollout)[world, at]
        later = (world.expand_as(at)[:, 1:], at[:, 1:])
        path = {
            "observation": self._at(rollout, later),
            "action": self._packed("action", rollout["action"][later]),
        }
        if rollout.get(PLAYER, None) is not None:
            same = rollout[PLAYER][world, at] == rollout[PLAYER][world, when]
            sign = torch.where(same, 1, -1).to(torch.int8)
            path["sign"], reward = sign[:, 1:], reward * sign.reshape(*sign.shape, *(1,) * (reward.dim() - 2))
        return {"rewards": reward, "path": TensorDict(path, batch_size=later[1].shape, device=rollout.device)}

    def _rewards(self, rollout: TensorDictBase) -> Tensor:
        """Return the rewards of worlds or teams `[B, L]`, or those of agents `[B, L, A]`."""
        reward: Tensor = rollout["next", "reward"].squeeze(-1)
        return reward.sum(-1) if self.team_reward and reward.dim() > 2 else reward

    def _terminated(self, rollout: TensorDictBase) -> Tensor:
        """Return terminations of worlds `[B, L]`, or those of their agents `[B, L, A]`."""
        world = rollout["next", "terminated"]
        agents = rollout.get(("next", "agents", "terminated"), None)
        return world.squeeze(-1) if agents is None or self.team_reward else world | agents

    def _sign(self, rollout: TensorDictBase, here: Any, there: Any) -> Tensor | int:
        """Return -1 where another player is to move at the end than at the beginning, else 1."""
        if rollout.get(PLAYER, None) is None:
            return 1
        same = rollout[PLAYER][here] == rollout["next", PLAYER][there]
        return torch.where(same, 1, -1).to(torch.int8)

    def _at(self, rollout: TensorDictBase, index: tuple[Tensor, ...]) -> TensorDict:
        """Return the observation at `index`, `[M]`, with integers in few bytes."""
        seen = agents_view(rollout) if self.per_agent else rollout.select(*self.observed, strict=False)
        return self._in_few_bytes(seen.apply(lambda value: value[index], batch_size=index[0].shape))

    def _in_few_bytes(self, rows: TensorDict) -> TensorDict:
        """Return observations with integers in as few bytes as their bounds allow."""
        for name, bound in self.bounds.items():
            value = rows.get(name, None)
            if value is not None:
                rows.set(name, value.clamp(0, bound - 1).to(smallest_dtype(bound)))
        return rows

    def _packed(self, name: str, value: Tensor) -> Tensor:
        return value.to(smallest_dtype(self.bounds[name])) if name in self.bounds else value


def agents_view(root: TensorDictBase) -> TensorDictBase:
    """Return what single agents observe in worlds `[*B]`: `agents.ego`, with their mask if there is one."""
    seen, mask = root[EGO].copy(), root.get(MASK, None)
    return seen if mask is None else seen.set(MASK, mask)


def powers(base: float, exponent: Tensor) -> Tensor:
    """Compute `base ** exponent`, float32."""
    return torch.pow(torch.full_like(exponent, base, dtype=torch.float32), exponent)


def smallest_dtype(bound: int) -> torch.dtype:
    """Return the smallest integer type that holds every number below `bound`.

    Example:
        >>> smallest_dtype(200), smallest_dtype(300)
        (torch.uint8, torch.int16)
    """
    if bound <= 1 << 8:
        return torch.uint8
    return torch.int16 if bound <= 1 << 15 else torch.int32


def unpacked(value: Tensor) -> Tensor:
    """Return a stored entry with integers as int64 again."""
    return value if value.is_floating_point() or value.dtype == torch.bool else value.long()
