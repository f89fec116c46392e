"""The reasoning environment: resolution engine, queries and observation.

Each goal has a different number of successors, and they follow from the goal alone. The root TensorDict
therefore holds the goal (`goal` with `atoms` `[*B, A, 3]` int32, `query` `[*B, 3]` int32 and `history`
`[*B, H]` int64) and `n_actions` `[*B]` int64. An action is an index into the successors, `[*B]` int64.
Rollouts store no successors. `env.successors(root["goal"])` recomputes them for batches of any shape.

- `view: state` is that alone, with the action layout `ChooseSuccessor`.
- `view: padded` adds `successors` `[*B, S, A, 3]` int32, `action_mask` `[*B, S]`, and a graph whose nodes are
  the goal and its successors. The action layout is `ChooseFromSet`, so the generic policies and losses work.
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
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import lower_bound, upper_bound
from edgewise.graphs.actions import ChooseFromSet
from edgewise.systems.reasoning import dynamics, observe, scenario
from edgewise.systems.reasoning.actions import ChooseSuccessor
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.corruption import Corruption
from edgewise.systems.reasoning.engine import oracle
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.expand import Expansion
from edgewise.systems.reasoning.engine.expansion_cache import ExpansionCache
from edgewise.systems.reasoning.engine.extra_actions import ExtraActions
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.successors import Successors
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.systems.reasoning.knowledge.placement import can_count, to_device


class ReasoningEnv(GraphEnv[ReasoningConfig]):
    """Proofs of queries over a knowledge graph. README.md describes the environment.

    Attributes:
        dataset: the knowledge graph.
        successors: maps goals to their successors; models use it to recompute them.
        corruption: sampler of false queries.

    Example:
        >>> env = ReasoningEnv(ReasoningConfig(), num_envs=8, seed=0)
        >>> root = env.reset()
        >>> env.successors(root["goal"]).counts
    """

    stage_settings = ("negative_ratio", "proof_depths")
    observes_together = True

    def setup(self) -> None:
        """Load the data, compile the program, and define graph and action layout."""
        config = self.config
        with _disable_current_modes():
            self.dataset = load_dataset(config.data, rules=config.rules)
            program = Program.compile(
                self.dataset.facts,
                self.dataset.rules,
                vocabulary=self.dataset.vocabulary,
                max_atoms=config.max_atoms,
                rows=scenario.available_facts(self.dataset.facts, config.withheld),
            )
            corruption = Corruption.of(self.dataset)
            queries = self._load_queries()
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
            extra_actions=ExtraActions(assume=config.assume, give_up=config.give_up, claim=config.claim),
        ).to(self.device)
        self.corruption = corruption.to(self.device)
        self._expansion_cache = ExpansionCache()
        self._depths: tuple[int, Tensor] | None = None
        self._split_queries = to_device(queries, self.device).to(torch.int64)
        self.set_queries(queries, torch.ones(len(queries), dtype=torch.bool))
        self._pool = self._pool_of(config)
        padded = config.view == "padded"
        self.graph = (
            observe.padded_spec(config.max_successors) if padded else observe.atoms_spec(config.max_atoms)
        )
        self.actions = (ChooseFromSet if padded else ChooseSuccessor)(config.max_successors)

    def set_queries(self, queries: Tensor, labels: Tensor) -> None:
        """Set the queries of `mode: eval`, `[n, 3]` ids, and their labels, `[n]`; restart the list."""
        if len(queries) != len(labels) or not len(queries):
            raise ConfigError(
                f"{len(queries)} queries and {len(labels)} labels: give the same number of both, at least one"
            )
        self._queries = to_device(queries, self.device).to(torch.int64)
        self._labels = to_device(labels, self.device).to(torch.bool)
        self._cursor = 0

    def check_stage(self, stage: ReasoningConfig) -> None:
        """Raise ConfigError if no query has a proof of the depths of a stage."""
        self._pool_of(stage)

    def apply_stage(self, **settings: Any) -> None:
        """Apply other settings from the next reset of each world on."""
        super().apply_stage(**settings)
        self._pool = self._pool_of(self.config)

    def spawn(self, count: int) -> Entries:
        """Sample new queries, each a goal of one atom."""
        config = self.config
        if config.mode == "eval":
            query, label = self._next_queries(count)
        else:
            query, label = scenario.draw_queries(
                self._pool,
                count,
                negative_ratio=config.negative_ratio,
                corruption=self.corruption,
                side=config.corrupt,
                generator=self.generator,
            )
        atoms = dynamics.start(query, max_atoms=config.max_atoms)
        history = torch.zeros(count, self._history_length, dtype=torch.int64, device=self.device)
        query = query.to(torch.int32)
        history[:, 0] = goal_hash(atoms)
        weight = 1.0 / max(1, config.negative_ratio)
        return {
            "atoms": atoms,
            "query": query,
            "label": label,
            "history": history,
            "negative_weight": torch.full((count,), weight, device=self.device),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Move to the chosen successor and compute the reward of finished proofs."""
        config, label = self.config, state["label"]
        atoms = self._chosen(state, action)
        if config.assume:
            atoms = dynamics.drop_assumed(atoms, self.ends)
        step, history = state["step"] + 1, state["history"]
        if config.memory:
            history = dynamics.remember(history, goal_hash(atoms), step=step)
        over = dynamics.is_over(atoms, self.ends)
        if config.limit_fails:
            over = over | (step >= config.max_steps)
        reward = dynamics.reward(
            atoms, label, kind=config.reward, negative_weight=state["negative_weight"], ends=self.ends
        )
        after = {"atoms": atoms, "history": history}
        return Transition(after, reward=torch.where(over, reward, 0.0), terminated=over)

    def observe(self, state: TensorDict) -> Entries:
        """Return the goal, the number of its successors and, in the padded view, all successors."""
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

    def step_and_maybe_reset(self, tensordict: TensorDictBase) -> tuple[TensorDictBase, TensorDictBase]:
        """Make a step and reset worlds; their successors are kept for the next step."""
        stepped, root = super().step_and_maybe_reset(tensordict)
        if self._can_sync:
            self._expansion_cache.follow(_inputs(root["state"]), stepped["next", "done"].squeeze(-1))
        return stepped, root

    def mask(self, state: TensorDict) -> Tensor | None:
        """Which places of the padded view are filled, `[B, S]`."""
        if self.config.view == "state":
            return None
        place = torch.arange(self.config.max_successors, device=self.device)
        return place < self.expanded(state).counts.unsqueeze(-1)

    def expanded(self, goal: TensorDictBase) -> Expansion:
        """Return the successors of `[B]` goals, with a cache of the last two expansions."""
        inputs = _inputs(goal)
        found = self._expansion_cache.get(inputs) if can_count(inputs[0]) else None
        if found is None:
            found = self.successors.of(*inputs[:2], history=inputs[2])
            if can_count(inputs[0]):
                self._expansion_cache.put(inputs, found)
        return found

    def to(self, device: torch.device | str) -> Self:
        """Move the environment with its facts and rules to another device."""
        moved = super().to(device)
        moved.successors, moved.corruption = self.successors.to(device), self.corruption.to(device)
        moved._queries, moved._labels = self._queries.to(device), self._labels.to(device)
        moved._split_queries, moved._pool = self._split_queries.to(device), self._pool.to(device)
        moved._expansion_cache = ExpansionCache()
        return moved

    def state_dict(self) -> dict[str, Any]:
        """Return the generator state and the position in the list of queries."""
        return {**super().state_dict(), "cursor": self._cursor}

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Restore what `state_dict` returned."""
        super().load_state_dict(state, strict=strict)
        self._cursor = int(state["cursor"])

    def _set_seed(self, seed: int | None) -> None:
        super()._set_seed(seed)
        self._cursor = 0

    @property
    def _can_sync(self) -> bool:
        """Whether a reset checks which worlds are done; always in `eval`, so that no query is skipped."""
        return super()._can_sync or self.config.mode == "eval"

    def _chosen(self, state: TensorDict, action: Tensor) -> Tensor:
        if can_count(action):
            atoms = self._expansion_cache.chosen(_inputs(state), action)
            if atoms is not None:
                return atoms
        return self.expanded(state).chosen(action)

    @property
    def _history_length(self) -> int:
        """Maximum number of goals in an episode."""
        return self.config.max_steps if self.config.memory else 1

    def _load_queries(self) -> Tensor:
        """Return the true queries of the split, `[n, 3]`."""
        if not self.dataset.rules:
            message = f"{self.config.data} has no rules to prove with"
            raise ConfigError(message, hint="name a rule file in the setting `rules`")
        heads = torch.tensor(sorted({rule.head[0] for rule in self.dataset.rules}))
        queries = scenario.queries_with_rules(self.dataset.split(self.config.split), heads)
        if not len(queries):
            raise ConfigError(
                f"no {self.config.split} query of {self.config.data} has a predicate in the head of a rule",
                hint="name another split or another rule file",
            )
        return queries

    def _next_queries(self, count: int) -> tuple[Tensor, Tensor]:
        """Return the next queries of the list and their labels; wrap around at its end."""
        number = (self._cursor + torch.arange(count, device=self.device)) % len(self._queries)
        self._cursor = (self._cursor + count) % len(self._queries)
        return self._queries[number], self._labels[number]

    def _pool_of(self, stage: ReasoningConfig) -> Tensor:
        """Return the queries that a stage samples from."""
        if stage.proof_depths is None:
            return self._split_queries
        low, high = int(lower_bound(stage.proof_depths)), int(upper_bound(stage.proof_depths))
        depth = self._proof_depths(high)
        pool = self._split_queries[(depth >= low) & (depth <= high)]
        if not len(pool):
            raise ConfigError(
                f"no query of {self.config.data} has a shortest proof of {low} to {high} steps",
                hint=f"there are proofs of {sorted(set(depth[depth > 0].tolist()))} steps",
            )
        return pool

    def _proof_depths(self, limit: int) -> Tensor:
        """Return the length of every query's shortest proof up to `limit`, 0 for none, `[n]`; cached."""
        if self._depths is None or self._depths[0] < limit:
            found = oracle.search(self.successors.program, self._split_queries, depth=limit, cap=oracle.CAP)
            self._depths = limit, found.depth
        return self._depths[1]


def _inputs(goal: TensorDictBase) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the successors of goals depend on."""
    return goal.get("atoms"), goal.get("query"), goal.get("history")
