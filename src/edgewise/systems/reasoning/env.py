"""Reasoning as an environment: the engine, the queries and the view, put together.

The layout. Successors are a set of another size for every goal, and what they are is known from the goal
alone. So the root holds the goal, `goal` with `atoms` `[*B, A, 3]` int32, `query` `[*B, 3]` int32 and
`history` `[*B, H]` int64, and `n_actions` `[*B]` int64; an action is a place among the successors, `[*B]`
int64. Rollouts keep that and no successors. Whoever needs them calls `env.successors(root["goal"])`, which is
ragged and takes batches of any shape; models, which may not import environments, are handed that object.

- `view: state` shows just this; the layout is `ChooseSuccessor`.
- `view: padded` adds `successors` `[*B, S, A, 3]` int32, `action_mask` `[*B, S]`, and a graph whose nodes are
  the goal and its successors; the layout is `ChooseFromSet`, so that stock policies and losses fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv, Transition
from edgewise.envs.packing import Entries
from edgewise.envs.ranges import highest, lowest
from edgewise.graphs.actions import ChooseFromSet, ChooseSuccessor
from edgewise.systems.reasoning import dynamics, observe, render, scenario
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.corruption import Corruption
from edgewise.systems.reasoning.engine import oracle, unary
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.expand import Expansion
from edgewise.systems.reasoning.engine.further import Further
from edgewise.systems.reasoning.engine.memo import Memo
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.successors import Successors
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.systems.reasoning.knowledge.placement import can_count, placed
from edgewise.systems.reasoning.potential import Potential


class ReasoningEnv(GraphEnv[ReasoningConfig]):
    """Prove queries of a knowledge graph from its facts and rules; see the card in README.md.

    Attributes:
        dataset: what was loaded.
        successors: goals to what can be chosen; give this to models that recompute successors.
        corruption: draws false queries.

    Example:
        >>> env = ReasoningEnv(ReasoningConfig(), num_envs=8, seed=0)
        >>> root = env.reset()
        >>> env.successors(root["goal"]).counts
    """

    stage_settings = ("negative_ratio", "proof_depths")

    def setup(self) -> None:
        """Load the data, compile the program, and lay out what is seen."""
        config = self.config
        with _disable_current_modes():
            self.dataset = load_dataset(config.data, rules=config.rules)
            program = Program.compile(
                self.dataset.facts,
                self.dataset.rules,
                vocabulary=self.dataset.vocabulary,
                max_atoms=config.max_atoms,
                rows=scenario.within_reach(self.dataset.facts, config.withheld),
            )
            corruption = Corruption.of(self.dataset, use_domains=config.use_domains)
            queries = self._own_queries()
        words = self.dataset.vocabulary
        self.ends = dynamics.Ends(
            words.num_predicates,
            words.true,
            words.false,
            words.end_false,
            words.end_true,
            words.assumed_offset,
        )
        self.successors = Successors(
            program,
            cap=config.max_successors,
            memory=config.memory,
            further=Further(assume=config.assume, give_up=config.give_up, claim=config.claim),
        ).to(self.device)
        self.corruption = corruption.to(self.device)
        self._memo = Memo()
        self._potential: Potential | None = None
        self._depths: tuple[int, Tensor] | None = None
        self._own = placed(queries, self.device).to(torch.int64)
        self.set_queries(queries, torch.ones(len(queries), dtype=torch.bool))
        self._pool = self._pool_of(config)
        padded = config.view == "padded"
        self.graph = (
            observe.padded_spec(config.max_successors) if padded else observe.atoms_spec(config.max_atoms)
        )
        self.actions = (ChooseFromSet if padded else ChooseSuccessor)(config.max_successors)

    def set_queries(self, queries: Tensor, labels: Tensor) -> None:
        """What `mode: eval` walks, from its start: `[n, 3]` ids and whether they are true `[n]`."""
        if len(queries) != len(labels) or not len(queries):
            raise ConfigError(
                f"{len(queries)} queries and {len(labels)} labels: give as many of both, and some"
            )
        self._queries = placed(queries, self.device).to(torch.int64)
        self._labels = placed(labels, self.device).to(torch.bool)
        self._cursor = 0

    def set_potential(self, potential: Potential | None) -> None:
        """Shape rewards from now on; None to stop."""
        self._potential = potential

    def check_stage(self, stage: ReasoningConfig) -> None:
        """There must be queries of the depths that are asked for."""
        self._pool_of(stage)

    def apply_stage(self, **settings: Any) -> None:
        """Let worlds follow other settings from their next birth on."""
        super().apply_stage(**settings)
        self._pool = self._pool_of(self.stage)

    def spawn(self, count: int) -> Entries:
        """New queries, each a goal of one atom."""
        config, stage = self.config, self.stage
        if config.mode == "eval":
            query, label = self._next_queries(count)
        else:
            query, label = scenario.draw_queries(
                self._pool,
                count,
                negative_ratio=stage.negative_ratio,
                corruption=self.corruption,
                side=config.corrupt,
                generator=self.generator,
            )
        atoms = dynamics.start(query, max_atoms=config.max_atoms)
        history = torch.zeros(count, self._room, dtype=torch.int64, device=self.device)
        query = query.to(torch.int32)
        if config.skip_unary:
            atoms, _, met = self._passed(atoms, query, history)
            history = dynamics.remember_all(history, met)
        else:
            history[:, 0] = goal_hash(atoms)
        weight = 1.0 / max(1, stage.negative_ratio)
        return {
            "atoms": atoms,
            "query": query,
            "label": label,
            "history": history,
            "negative_weight": torch.full((count,), weight, device=self.device),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Become the chosen successor; what ends a proof pays."""
        config, query, label = self.config, state["query"], state["label"]
        atoms = dynamics.settled(self._chosen(state, action), self.ends)
        step, history, truncated = state["step"] + 1, state["history"], None
        if config.skip_unary:
            atoms, truncated, met = self._passed(atoms, query, history)
            history = dynamics.remember_all(history, met) if config.memory else history
        elif config.memory:
            history = dynamics.remember(history, goal_hash(atoms), step=step)
        over = dynamics.is_over(atoms, self.ends)
        if config.limit_fails:
            over = over | (step >= config.max_steps)
        reward = dynamics.reward(
            atoms, label, kind=config.reward, negative_weight=state["negative_weight"], ends=self.ends
        )
        reward = torch.where(over, reward, 0.0)
        if self._potential is not None:
            reward = reward + self._potential.gained(
                state["atoms"], atoms, over=over, num_entities=self.dataset.vocabulary.num_entities
            )
        after = {"atoms": atoms, "history": history}
        return Transition(after, reward=reward, terminated=over, truncated=truncated)

    def observe(self, state: TensorDict) -> Entries:
        """The goal, how many successors it has, and in the padded view all of them."""
        goal = {name: state[name] for name in ("atoms", "query", "history")}
        found, entities = self.expanded(state), self.dataset.vocabulary.num_entities
        seen = {
            "goal": goal,
            "n_actions": found.counts,
            "metrics": observe.metrics(state, ends=self.ends, max_steps=self.config.max_steps),
        }
        if self.config.view == "state":
            return {**seen, "graph": observe.atoms_graph(state["atoms"], num_entities=entities)}
        successors, filled = found.padded(self.config.max_successors)
        nodes = torch.arange(1, 1 + self.config.max_successors, device=self.device)
        graph = observe.padded_graph(
            state["atoms"], successors, filled, ends=self.ends, num_entities=entities
        )
        return {**seen, "graph": graph, "successors": successors, "choices": nodes.expand(filled.shape)}

    def mask(self, state: TensorDict) -> Tensor | None:
        """Which places of the padded view are filled, `[B, S]`."""
        if self.config.view == "state":
            return None
        place = torch.arange(self.config.max_successors, device=self.device)
        return place < self.expanded(state).counts.unsqueeze(-1)

    def expanded(self, goal: TensorDictBase) -> Expansion:
        """As `successors`, of `[B]` goals, remembering the last answers."""
        asked = goal.get("atoms"), goal.get("query"), goal.get("history")
        found = self._memo.recall(asked) if can_count(asked[0]) else None
        if found is None:
            found = self.successors.of(*asked[:2], history=asked[2])
            if can_count(asked[0]):
                self._memo.keep(asked, found)
        return found

    def replay(self, states: TensorDict) -> dict[str, Any]:
        """A replay of one world's states over time, `[T + 1]`, with names."""
        return render.replay(states, self.dataset.vocabulary)

    def to(self, device: torch.device | str) -> Self:
        """Move to another device, facts and rules too."""
        moved = super().to(device)
        moved.successors, moved.corruption = self.successors.to(device), self.corruption.to(device)
        moved._queries, moved._labels = self._queries.to(device), self._labels.to(device)
        moved._own, moved._pool, moved._memo = self._own.to(device), self._pool.to(device), Memo()
        return moved

    def state_dict(self) -> dict[str, Any]:
        """What the next births depend on, the place in the list of queries included."""
        return {**super().state_dict(), "cursor": self._cursor}

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Continue as the environment that gave `state` would have."""
        super().load_state_dict(state, strict=strict)
        self._cursor = int(state["cursor"])

    def _set_seed(self, seed: int | None) -> None:
        super()._set_seed(seed)
        self._cursor = 0

    @property
    def _asks_host(self) -> bool:
        """As elsewhere; and where a list is walked, so that no query is spent on a world that goes on."""
        return super()._asks_host or self.config.mode == "eval"

    def _chosen(self, state: TensorDict, action: Tensor) -> Tensor:
        if can_count(action):
            asked = state.get("atoms"), state.get("query"), state.get("history")
            atoms = self._memo.chosen(asked, action)
            if atoms is not None:
                return atoms
        return self.expanded(state).chosen(action)

    @property
    def _room(self) -> int:
        """Goals that an episode can go through, those without a choice included."""
        passed = self.config.skip_limit if self.config.skip_unary else 0
        return self.config.max_steps * (1 + passed) if self.config.memory else 1

    def _passed(self, atoms: Tensor, query: Tensor, history: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return unary.passed(
            self.successors,
            atoms,
            query=query,
            history=history,
            ends=self.ends,
            limit=self.config.skip_limit,
        )

    def _own_queries(self) -> Tensor:
        """The true queries of the split, `[n, 3]`."""
        if not self.dataset.rules:
            message = f"{self.config.data} has no rules to prove with"
            raise ConfigError(message, hint="name a rule file in `rules`")
        queries = self.dataset.split(self.config.split)
        if self.config.with_rules_only:
            heads = torch.tensor(sorted({rule.head[0] for rule in self.dataset.rules}))
            queries = scenario.concluded(queries, heads)
        if not len(queries):
            raise ConfigError(
                f"no {self.config.split} query of {self.config.data} has a predicate that rules conclude",
                hint="set with_rules_only to false",
            )
        return queries

    def _next_queries(self, count: int) -> tuple[Tensor, Tensor]:
        """The next of the list, from its start again after its end."""
        number = (self._cursor + torch.arange(count, device=self.device)) % len(self._queries)
        self._cursor = (self._cursor + count) % len(self._queries)
        return self._queries[number], self._labels[number]

    def _pool_of(self, stage: ReasoningConfig) -> Tensor:
        """The queries that births draw from at this stage."""
        if stage.proof_depths is None:
            return self._own
        low, high = int(lowest(stage.proof_depths)), int(highest(stage.proof_depths))
        depth = self._proof_depths(high)
        pool = self._own[(depth >= low) & (depth <= high)]
        if not len(pool):
            raise ConfigError(
                f"no query of {self.config.data} has a shortest proof of {low} to {high} steps",
                hint=f"there are proofs of {sorted(set(depth[depth > 0].tolist()))} steps",
            )
        return pool

    def _proof_depths(self, limit: int) -> Tensor:
        """Steps of every query's shortest proof up to `limit`, 0 for none, `[n]`; searched for once."""
        if self._depths is None or self._depths[0] < limit:
            found = oracle.search(self.successors.program, self._own, depth=limit, cap=oracle.CAP)
            self._depths = limit, found.depth
        return self._depths[1]
