"""Collect games of a policy against itself, its snapshots and baselines, both seats in one batch.

In a game against itself every ply is a transition. In other games the plies of the opponent are part of the
environment: a transition goes from one decision of the learner to its next, and a lost game gives
a reward of -1 to the last ply of the learner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import replace_rows
from edgewise.envs.policy import Policy
from edgewise.evaluation.arena.gate import Gate
from edgewise.evaluation.arena.match import play_match
from edgewise.graphs.keys import RESTARTED
from edgewise.scale.processes.group import ALONE, Group
from edgewise.training.self_play.pool import OpponentPool

DROPPED = ("state", ("next", "state"))
MIRROR = -1
"""Group of the rows in which the learner plays against itself."""


class SelfPlayRollout:
    """Collects rollouts in a two-player environment.

    In the first rows the learner plays against itself, then against baselines, and games continue from batch
    to batch. The other rows are games against snapshots, which are restarted in every batch, with newly
    sampled opponents. Both are in equal groups of one opponent each; the learner plays first in half of a
    group.

    Args:
        env: a two-player environment, with `player` in its root.
        policy: the learner, of which snapshots are taken.
        behaviour: what the learner collects with, if it writes more than `policy`.
        rollout_length: T, decisions of the learner in every row of a batch.
        share: share of rows that play against snapshots.
        opponents: number of opponents in a batch.
        pool_size: size of the pool of snapshots.
        snapshot_every: batches between snapshots.
        matchmaking: see `OpponentPool.odds`.
        baselines: opponents that do not learn, by name.
        baseline_share: share of rows that play against them, in equal parts.
        gate: largest probability of accepting a snapshot that is no better than the newest one; None accepts
            all.
        gate_games: largest number of games that the gate plays.
        seed: seed of the sampled opponents.
        group: the processes that train together, each with its share of the rows. All meet the same
            opponents, and results count for all.

    Attributes:
        refused: number of snapshots that the gate has refused.
    """

    def __init__(
        self,
        env: GraphEnv[Any],
        policy: nn.Module,
        *,
        behaviour: Policy | None = None,
        rollout_length: int,
        share: float,
        opponents: int = 2,
        pool_size: int = 8,
        snapshot_every: int = 10,
        matchmaking: str = "variance",
        baselines: Mapping[str, Policy] | None = None,
        baseline_share: float = 0.0,
        gate: float | None = None,
        gate_games: int = 400,
        seed: int = 0,
        group: Group = ALONE,
    ) -> None:
        if gate is not None and env.num_envs % 2:
            raise ConfigError(
                "a gate plays pairs of games, so the num_envs of each process must be even, "
                f"got {env.num_envs}"
            )
        self.env, self.policy, self.rollout_length = env, policy, rollout_length
        self._behaviour = policy if behaviour is None else behaviour
        self.pool = OpponentPool(policy, size=pool_size)
        self.generator = torch.Generator().manual_seed(seed)
        self._snapshot_every, self._matchmaking, self._opponents = snapshot_every, matchmaking, opponents
        self._gate, self._gate_rounds = gate, -(-gate_games // (env.num_envs * group.size))
        self._processes = group
        self.refused = 0
        rows = torch.arange(env.num_envs, device=env.device)
        self._baselines = dict(baselines or {})
        fixed = int(baseline_share * env.num_envs) if self._baselines else 0
        against = int(share * env.num_envs)
        self._in_pool = rows >= env.num_envs - against
        in_fixed = ~self._in_pool & (rows >= env.num_envs - against - fixed)
        # Groups of baselines follow those of snapshots.
        named = opponents + rows // 2 % max(1, len(self._baselines))
        self._group = torch.where(self._in_pool, rows // 2 % opponents, torch.where(in_fixed, named, MIRROR))
        self._opponent_groups = torch.arange(opponents + len(self._baselines), device=env.device).unsqueeze(
            -1
        )
        self._scores: dict[str, float] = {}
        self._seat = rows % 2
        self._batches = 0
        self._carried: TensorDictBase | None = None

    def collect(self) -> TensorDictBase:
        """Collect the next T decisions of every row, `[B, T]`."""
        if self._batches % self._snapshot_every == 0:
            self._take_snapshot()
        self._batches += 1
        slots = [self.pool.draw(self._matchmaking, generator=self.generator) for _ in range(self._opponents)]
        snapshots = [self.pool.player(slot, like=self.policy) for slot in slots]
        players: list[Policy] = [*snapshots, *self._baselines.values()]
        was_training = self.policy.training
        self.policy.eval()
        with torch.no_grad(), set_exploration_type(ExplorationType.RANDOM):
            batch, results = self._play(self._start(), players)
        self.policy.train(was_training)
        results = self._processes.sum(results)
        for group, slot in enumerate(slots):
            points, games = results[group].tolist()
            self.pool.record(slot, points=points, games=int(games))
        played = zip(self._baselines, results[len(slots) :].tolist(), strict=True)
        self._scores = {name: points / games for name, (points, games) in played if games}
        return batch

    def metrics(self) -> dict[str, float]:
        """Return rating and score of the newest snapshot, numbers of snapshots, and scores against baselines.

        The latter are of the last batch, for baselines against which a game ended in it.
        """
        newest = self.pool.newest
        found = {"rating": self.pool.ratings[newest], "score": self.pool.scores[newest]}
        counts = {"snapshots": float(self.pool.count), "refused": float(self.refused)}
        counts |= {f"score_{name}": score for name, score in self._scores.items()}
        return {name: float(value) for name, value in found.items()} | counts

    def _take_snapshot(self) -> None:
        """Add the current policy to the pool if it passes the gate."""
        if self.pool.count == 0 or self._gate is None or self._passes(Gate(self._gate)):
            self.pool.add(self.policy, batch=self._batches)
        else:
            self.refused += 1

    def _passes(self, gate: Gate) -> bool:
        """Return whether the policy beats the newest snapshot; both sample their actions."""
        newest = self.pool.player(self.pool.newest, like=self.policy)
        for _ in range(self._gate_rounds):
            seed = int(torch.randint(2**31, (), generator=self.generator))
            group = self._processes
            match = play_match(self.env, self.policy, newest, seed=seed + group.rank, deterministic=False)
            if gate.play(score for scores in group.gather(match.scores.tolist()) for score in scores):
                return True
        return False

    def _start(self) -> TensorDictBase:
        """Return the roots of the next batch: reset against snapshots, else continued."""
        if self._carried is None:
            return self.env.reset()
        return self.env.reset(self._carried.copy().set("_reset", self._in_pool.unsqueeze(-1)))

    def _play(self, root: TensorDictBase, players: Sequence[Policy]) -> tuple[TensorDictBase, Tensor]:
        """Play T steps; returns them, and points and games of the learner against each player, `[P, 2]`."""
        names = (*self.env.full_observation_spec.keys(), *self.env.full_done_spec.keys())
        results = torch.zeros(len(players), 2, device=self._seat.device)
        played, root = [], self._play_until_learner(root, players)
        for _ in range(self.rollout_length):
            step, root = self.env.step_and_maybe_reset(self._behaviour(root))
            step, root = self._with_reply(step, root, players)
            results += self._results(step["next"])
            played.append(step.exclude(*DROPPED))
            root = self._play_until_learner(root.select(*names), players)
        self._carried = root.select(*names)
        batch = TensorDict.stack(played, -1)
        first = torch.arange(self.rollout_length, device=self._group.device) == 0
        return batch.set(RESTARTED, first & self._in_pool.unsqueeze(-1)), results

    def _with_reply(
        self, step: TensorDictBase, root: TensorDictBase, players: Sequence[Policy]
    ) -> tuple[TensorDictBase, TensorDictBase]:
        """Merge the reply of an opponent into a step of the learner; returns the step and the next root.

        In new games that an opponent begins, it makes its first move in the same ply.
        """
        following, waiting = step["next"], self._opponent_to_move(root)
        after = self._ply(root, waiting, players)
        if after is None:
            return step, root
        replies = waiting & ~following["done"].squeeze(-1)
        reward = following["reward"] - after["reward"]
        merged = after.select(*following.keys()).where(replies, following)
        merged["reward"] = torch.where(replies.unsqueeze(-1), reward, following["reward"])
        return step.copy().set("next", merged), self.env.maybe_reset(after.exclude("reward"))

    def _play_until_learner(self, root: TensorDictBase, players: Sequence[Policy]) -> TensorDictBase:
        """Let opponents move until it is the learner's turn in every row."""
        while (after := self._ply(root, self._opponent_to_move(root), players)) is not None:
            root = self.env.maybe_reset(after.exclude("reward"))
        return root

    def _opponent_to_move(self, root: TensorDictBase) -> Tensor:
        """Return rows in which an opponent is to move, `[B]` bool."""
        return (self._group != MIRROR) & (root["player"] != self._seat)

    def _ply(self, root: TensorDictBase, moves: Tensor, players: Sequence[Policy]) -> TensorDictBase | None:
        """Step the rows `moves` with actions of opponents; the others stay. None if no row moves.

        The host waits for the device once, for the number of rows of each opponent.
        """
        counts = (moves & (self._group == self._opponent_groups)).sum(-1).tolist()
        if not any(counts):
            return None
        after = root.copy().set("reward", torch.zeros_like(root["done"], dtype=torch.float32))
        rows = torch.where(moves, self._group, len(players)).argsort(stable=True)[: sum(counts)]
        waiting = root[rows]
        parts = zip(players, waiting.split(counts), strict=True)
        action = torch.cat([player(part)["action"] for player, part in parts if len(part)])
        moved = self.env.simulate(waiting.set("action", action))
        return after.update(replace_rows(after, dict(moved.items()), rows))

    def _results(self, following: TensorDictBase) -> Tensor:
        """Compute points and games of the learner in this step against each opponent, `[P, 2]`."""
        done, ended = following["done"].squeeze(-1), following["terminated"].squeeze(-1)
        result = following["reward"].squeeze(-1).sign().masked_fill(~ended, 0.0)
        points = torch.where(done, (1 + result) / 2, 0.0)
        both = torch.stack((points, done.float()), -1)
        return (self._group == self._opponent_groups).to(both) @ both

    def state_dict(self) -> dict[str, Any]:
        """Return the running games, the states of environment and generator, and the pool."""
        return {
            "carried": {} if self._carried is None else self._carried.to_dict(),
            "env": self.env.state_dict(),
            "pool": self.pool.state_dict(),
            "generator": self.generator.get_state(),
            "batches": self._batches,
            "refused": self.refused,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore `state`; collection continues bit for bit."""
        self.env.load_state_dict(state["env"])
        self.pool.load_state_dict(state["pool"])
        self.generator.set_state(state["generator"].cpu())
        self._batches, self.refused = int(state["batches"]), int(state["refused"])
        self._carried = None
        if state["carried"]:
            size, device = self.env.batch_size, self.env.device
            self._carried = TensorDict(state["carried"], batch_size=size, device=device).clone()
