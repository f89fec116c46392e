"""Collects games of a policy against itself and against its snapshots, both seats in one batch.

In a game against itself every ply is a step to learn from. In a game against a snapshot only the learner's
plies are: the reply belongs to the step, as if it were the world's. A step then leads from one decision of
the learner to its next, and a lost game is a reward of -1 for the ply before the reply that lost it.
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
from edgewise.envs.packing import replace_rows
from edgewise.evaluation.arena.gate import Gate
from edgewise.evaluation.arena.match import play_match
from edgewise.graphs.policy import Policy
from edgewise.training.episodes import ANEW
from edgewise.training.self_play.pool import OpponentPool

DROPPED = ("state", ("next", "state"))
MIRROR = -1
"""The group of the rows in which the learner plays itself."""


class SelfPlayRollout:
    """Plays in an environment of two players, portion after portion.

    The first rows play the learner against itself and go on from batch to batch. The others are games against
    snapshots, in equal groups of one opponent each, half of a group with the learner first; they begin anew
    in every batch, with opponents drawn anew.

    Args:
        env: of two players, with `player` in its root.
        policy: what learns.
        rollout_length: T, decisions of the learner in every row of a batch.
        share: of rows that play snapshots.
        opponents: how many different ones in a batch.
        pool_size: how many snapshots are kept.
        snapshot_every: batches between snapshots.
        matchmaking: see `OpponentPool.odds`.
        gate: largest chance that a snapshot which is no better than the newest in the pool gets in; None lets
            all in.
        gate_games: most games that a snapshot plays the newest to get in.
        seed: of who is drawn.

    Attributes:
        refused: how many snapshots the gate has kept out.
    """

    def __init__(
        self,
        env: GraphEnv[Any],
        policy: nn.Module,
        *,
        rollout_length: int,
        share: float,
        opponents: int = 2,
        pool_size: int = 8,
        snapshot_every: int = 10,
        matchmaking: str = "variance",
        gate: float | None = None,
        gate_games: int = 400,
        seed: int = 0,
    ) -> None:
        if gate is not None and env.num_envs % 2:
            raise ConfigError(f"a gate plays pairs of games: num_envs must be even, got {env.num_envs}")
        self.env, self.policy, self.rollout_length = env, policy, rollout_length
        self.pool = OpponentPool(policy, size=pool_size)
        self.generator = torch.Generator().manual_seed(seed)
        self._snapshot_every, self._matchmaking, self._opponents = snapshot_every, matchmaking, opponents
        self._gate, self._gate_rounds = gate, -(-gate_games // env.num_envs)
        self.refused = 0
        rows = torch.arange(env.num_envs, device=env.device)
        against = int(share * env.num_envs)
        in_pool = rows >= env.num_envs - against
        self._group = torch.where(in_pool, rows // 2 % opponents, MIRROR)
        self._seat = rows % 2
        self._batches = 0
        self._carried: TensorDictBase | None = None

    def collect(self) -> TensorDictBase:
        """The next T decisions of every row, `[B, T]`."""
        if self._batches % self._snapshot_every == 0:
            self._take_snapshot()
        self._batches += 1
        places = [self.pool.draw(self._matchmaking, generator=self.generator) for _ in range(self._opponents)]
        players = [self.pool.player(place, like=self.policy) for place in places]
        was_training = self.policy.training
        self.policy.eval()
        with torch.no_grad(), set_exploration_type(ExplorationType.RANDOM):
            batch, results = self._play(self._start(), players)
        self.policy.train(was_training)
        for group, place in enumerate(places):
            points, games = results[group].tolist()
            self.pool.record(place, points=points, games=int(games))
        return batch

    def metrics(self) -> dict[str, float]:
        """How the newest snapshot is rated, how many there are, and how the learner fares against it."""
        newest = self.pool.newest
        found = {"rating": self.pool.ratings[newest], "score": self.pool.scores[newest]}
        counts = {"snapshots": float(self.pool.count), "refused": float(self.refused)}
        return {name: float(value) for name, value in found.items()} | counts

    def _take_snapshot(self) -> None:
        """Let the policy as it is into the pool, if it passes the gate."""
        if self.pool.count == 0 or self._gate is None or self._passes(Gate(self._gate)):
            self.pool.add(self.policy, batch=self._batches)
        else:
            self.refused += 1

    def _passes(self, gate: Gate) -> bool:
        """Whether the policy shows that it beats the newest snapshot; both draw their moves."""
        newest = self.pool.player(self.pool.newest, like=self.policy)
        for _ in range(self._gate_rounds):
            seed = int(torch.randint(2**31, (), generator=self.generator))
            match = play_match(self.env, self.policy, newest, seed=seed, deterministic=False)
            if gate.play(match.scores):
                return True
        return False

    def _start(self) -> TensorDictBase:
        """The roots to play on from: old ones against itself, new ones against snapshots."""
        if self._carried is None:
            return self.env.reset()
        again = (self._group != MIRROR).unsqueeze(-1)
        return self.env.reset(self._carried.copy().set("_reset", again))

    def _play(self, root: TensorDictBase, players: Sequence[Policy]) -> tuple[TensorDictBase, Tensor]:
        """T steps, and points and games of the learner against each player, `[P, 2]`."""
        names = (*self.env.full_observation_spec.keys(), *self.env.full_done_spec.keys())
        results = torch.zeros(len(players), 2, device=self._seat.device)
        played, root = [], self._settled(root, players)
        for _ in range(self.rollout_length):
            step, root = self.env.step_and_maybe_reset(self.policy(root))
            step, root = self._replied(step, root, players)
            results += self._results(step["next"])
            played.append(step.exclude(*DROPPED))
            root = self._settled(root.select(*names), players)
        self._carried = root.select(*names)
        batch = TensorDict.stack(played, -1)
        first = torch.arange(self.rollout_length, device=self._group.device) == 0
        return batch.set(ANEW, first & (self._group != MIRROR).unsqueeze(-1)), results

    def _replied(
        self, step: TensorDictBase, root: TensorDictBase, players: Sequence[Policy]
    ) -> tuple[TensorDictBase, TensorDictBase]:
        """A step of the learner with the reply in it, where a snapshot is to move, and the root after it."""
        following = step["next"]
        replies = self._waiting(root) & ~following["done"].squeeze(-1)
        after = self._ply(root, replies, players)
        reward = following["reward"] - after["reward"]
        merged = after.select(*following.keys()).where(replies, following)
        merged["reward"] = torch.where(replies.unsqueeze(-1), reward, following["reward"])
        return step.copy().set("next", merged), self.env.maybe_reset(after.exclude("reward"))

    def _settled(self, root: TensorDictBase, players: Sequence[Policy]) -> TensorDictBase:
        """The roots after snapshots have opened where it is theirs to open; the learner is to move."""
        while bool((waiting := self._waiting(root)).any()):
            root = self.env.maybe_reset(self._ply(root, waiting, players).exclude("reward"))
        return root

    def _waiting(self, root: TensorDictBase) -> Tensor:
        """Rows in which a snapshot is to move, `[B]` bool."""
        return (self._group != MIRROR) & (root["player"] != self._seat)

    def _ply(self, root: TensorDictBase, moves: Tensor, players: Sequence[Policy]) -> TensorDictBase:
        """What follows when snapshots move in the rows `moves` and the others stand still."""
        after = root.copy().set("reward", torch.zeros_like(root["done"], dtype=torch.float32))
        rows = moves.nonzero().squeeze(-1)
        if not len(rows):
            return after
        waiting, groups = root[rows], self._group[rows]
        action = torch.zeros_like(rows)
        for group, player in enumerate(players):
            own = (groups == group).nonzero().squeeze(-1)
            if len(own):
                action[own] = player(waiting[own])["action"]
        moved = self.env.follow(waiting.set("action", action))
        return after.update(replace_rows(after, dict(moved.items()), rows))

    def _results(self, following: TensorDictBase) -> Tensor:
        """Points and games of the learner in this step against each group's opponent, `[P, 2]`."""
        done, reward = following["done"].squeeze(-1), following["reward"].squeeze(-1)
        points = torch.where(done, (1 + reward.sign()) / 2, 0.0)
        both = torch.stack((points, done.float()), -1)
        return torch.stack([both[self._group == group].sum(0) for group in range(self._opponents)])

    def state_dict(self) -> dict[str, Any]:
        """The games under way, the environment's own state, the pool, and who is drawn next."""
        return {
            "carried": {} if self._carried is None else self._carried.to_dict(),
            "env": self.env.state_dict(),
            "pool": self.pool.state_dict(),
            "generator": self.generator.get_state(),
            "batches": self._batches,
            "refused": self.refused,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on, bit for bit, as the rollout that gave `state` would have."""
        self.env.load_state_dict(state["env"])
        self.pool.load_state_dict(state["pool"])
        self.generator.set_state(state["generator"].cpu())
        self._batches, self.refused = int(state["batches"]), int(state["refused"])
        self._carried = None
        if state["carried"]:
            size, device = self.env.batch_size, self.env.device
            self._carried = TensorDict(state["carried"], batch_size=size, device=device).clone()
