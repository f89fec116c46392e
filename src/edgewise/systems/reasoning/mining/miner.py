"""Mine rules: collect bodies, count them within a time limit, drop redundant rules, sort by confidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context

import numpy as np

from edgewise.systems.reasoning.knowledge.rules import Atom, Rule
from edgewise.systems.reasoning.mining.candidates import chain_bodies
from edgewise.systems.reasoning.mining.chains import ChainRule, count_body, single_atom_rules
from edgewise.systems.reasoning.mining.config import MiningConfig
from edgewise.systems.reasoning.mining.properties import (
    ANY,
    AT_ONCE,
    SELF,
    Properties,
    PropertyRules,
    count_property_rules,
)
from edgewise.systems.reasoning.mining.relations import Body, Ints, Relations

BATCH = 32
"""Bodies per task of a worker process."""

Progress = Callable[[int, int, int], None]
"""Called with bodies counted, bodies in all, and rules found."""


@dataclass(frozen=True)
class Mined:
    """Rules and how they were found.

    Attributes:
        rules: by falling confidence.
        bodies: number of chains whose rules were counted.
        candidates: number of chains that were to be counted.
        complete: whether all were counted before the time limit.
    """

    rules: tuple[Rule, ...]
    bodies: int
    candidates: int
    complete: bool


def mine(
    facts: Ints,
    *,
    num_predicates: int,
    num_entities: int,
    config: MiningConfig,
    progress: Progress | None = None,
) -> Mined:
    """Mine rules from facts `[n, 3]` of ids from 1.

    Equal facts, settings and seed give equal rules, unless the time limit is reached.
    """
    ends = time.monotonic() + 60 * config.minutes
    relations = Relations(facts, num_predicates=num_predicates, num_entities=num_entities)
    chains = single_atom_rules(relations, min_support=config.min_support)
    properties, unary = None, None
    if config.constants:
        properties = Properties.of(relations, min_count=config.min_support)
        unary = _property_rules(relations, properties, config)
    queue = _bodies(relations, config)
    done = 0
    for found in _count(relations, facts, queue, config):
        chains += [rule for rules in found for rule in rules]
        done += len(found)
        if progress is not None:
            progress(done, len(queue), len(chains) + (0 if unary is None else len(unary)))
        if time.monotonic() > ends:
            break
    kept = _select_chains(chains, config)
    rules = [_chain_rule(rule, config, num_predicates) for rule in kept]
    if properties is not None and unary is not None:
        unary = _without_instances(properties, unary, kept, config)
        rules += _property_texts(properties, unary, config, num_predicates)
    rules.sort(key=lambda rule: (-rule.weight, -(rule.support or 0), len(rule.body), rule.head, rule.body))
    named = [
        Rule(f"r{number}", rule.weight, rule.head, rule.body, rule.support, rule.body_size)
        for number, rule in enumerate(rules)
    ]
    return Mined(tuple(named), done, len(queue), done == len(queue))


def _bodies(relations: Relations, config: MiningConfig) -> list[Body]:
    """Return the chains to count: short ones first, then those that connect most sampled pairs."""
    queue: list[Body] = []
    for length in range(2, config.length + 1):
        counts = chain_bodies(
            relations,
            length=length,
            pairs=config.pairs,
            branches=config.branches,
            generator=np.random.default_rng([config.seed, length]),
        )
        queue += sorted(counts, key=lambda body: (-counts[body], body))
    return queue


def _count(
    relations: Relations, facts: Ints, queue: Sequence[Body], config: MiningConfig
) -> Iterator[list[list[ChainRule]]]:
    """Count the rules of all bodies, batch by batch in order."""
    batches = (tuple(queue[start : start + BATCH]) for start in range(0, len(queue), BATCH))
    if config.jobs == 1:
        for batch in batches:
            yield _count_batch(relations, batch, config)
        return
    sizes = (relations.num_predicates, relations.num_entities)
    context = get_context("spawn")
    pool = ProcessPoolExecutor(
        config.jobs, context, initializer=_start_worker, initargs=(facts, sizes, config)
    )
    try:
        waiting: list[Future[list[list[ChainRule]]]] = [
            pool.submit(_work, batch) for batch in islice(batches, 4 * config.jobs)
        ]
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(_work, batch) for batch in islice(batches, 1)]
    finally:
        pool.shutdown(cancel_futures=True)


def _count_batch(relations: Relations, batch: Sequence[Body], config: MiningConfig) -> list[list[ChainRule]]:
    def useful(rule: ChainRule) -> bool:
        return rule.support >= config.min_confidence * (rule.body_size + config.pessimism)

    found = (
        count_body(
            relations, body, min_support=config.min_support, max_paths=config.max_paths, seed=config.seed
        )
        for body in batch
    )
    return [[rule for rule in rules if useful(rule)] for rules in found]


_worker: tuple[Relations, MiningConfig]
"""What a worker process counts with."""


def _start_worker(facts: Ints, sizes: tuple[int, int], config: MiningConfig) -> None:
    global _worker
    _worker = Relations(facts, num_predicates=sizes[0], num_entities=sizes[1]), config


def _work(batch: tuple[Body, ...]) -> list[list[ChainRule]]:
    relations, config = _worker
    return _count_batch(relations, batch, config)


def _select_chains(chains: list[ChainRule], config: MiningConfig) -> list[ChainRule]:
    """Keep the most confident chains of each predicate, one of those that conclude the same pairs."""

    def confidence(rule: ChainRule) -> float:
        return rule.support / (rule.body_size + config.pessimism)

    order = sorted(
        chains, key=lambda rule: (-confidence(rule), -rule.support, len(rule.body), rule.head, rule.body)
    )
    seen: set[tuple[int, int]] = set()
    count: dict[int, int] = {}
    kept = []
    for rule in order:
        key = (rule.head, rule.digest)
        if confidence(rule) < config.min_confidence or (not rule.sampled and key in seen):
            continue
        if count.get(rule.head, 0) < config.max_chains:
            seen.add(key)
            count[rule.head] = count.get(rule.head, 0) + 1
            kept.append(rule)
    return kept


def _property_rules(relations: Relations, properties: Properties, config: MiningConfig) -> PropertyRules:
    heads = np.flatnonzero(properties.value != ANY)
    parts = []
    for start in range(0, len(heads), AT_ONCE):
        found = count_property_rules(
            relations,
            properties,
            heads[start : start + AT_ONCE],
            min_support=config.min_support,
            min_confidence=config.min_confidence,
            pessimism=config.pessimism,
        )
        confidence = found.support / (found.body_size + config.pessimism)
        order = np.lexsort((found.body, -found.support, -confidence, found.head))
        head = found.head[order]
        rank = np.arange(len(head)) - np.searchsorted(head, head)
        parts.append(found[order[rank < config.max_constants]])
    names = ("head", "body", "support", "body_size")
    none = np.zeros(0, dtype=np.int64)
    return PropertyRules(*(np.concatenate([none, *(getattr(one, name) for one in parts)]) for name in names))


def _without_instances(
    properties: Properties, unary: PropertyRules, chains: list[ChainRule], config: MiningConfig
) -> PropertyRules:
    """Drop h(X,c) ← b(X,c) if h(X,Y) ← b(X,Y) is at least as confident."""
    general = {
        (rule.head, rule.body[0]): rule.support / (rule.body_size + config.pessimism)
        for rule in chains
        if len(rule.body) == 1
    }
    same = (properties.value[unary.head] == properties.value[unary.body]) & (
        properties.value[unary.head] >= 0
    )
    confidence = unary.support / (unary.body_size + config.pessimism)
    keep = np.ones(len(unary), dtype=bool)
    for place in np.flatnonzero(same).tolist():
        head, body = int(properties.relation[unary.head[place]]), int(properties.relation[unary.body[place]])
        keep[place] = confidence[place] > general.get((head, body), -1.0)
    return unary[keep]


def _chain_rule(rule: ChainRule, config: MiningConfig, predicates: int) -> Rule:
    """Return a chain with X = −1, Y = −2 and the variables between them −3, −4."""
    inner = [-3 - number for number in range(len(rule.body) - 1)]
    ends = [-1, *inner, -2]
    body = tuple(
        _atom(relation, ends[place], ends[place + 1], predicates) for place, relation in enumerate(rule.body)
    )
    confidence = rule.support / (rule.body_size + config.pessimism)
    return Rule("", round(confidence, 6), (rule.head + 1, -1, -2), body, rule.support, rule.body_size)


def _property_texts(
    properties: Properties, unary: PropertyRules, config: MiningConfig, predicates: int
) -> list[Rule]:
    confidence = unary.support / (unary.body_size + config.pessimism)
    heads = zip(properties.relation[unary.head].tolist(), properties.value[unary.head].tolist(), strict=True)
    bodies = zip(properties.relation[unary.body].tolist(), properties.value[unary.body].tolist(), strict=True)
    numbers = zip(confidence.tolist(), unary.support.tolist(), unary.body_size.tolist(), strict=True)
    rules = []
    for (head, c), (body, d), (weight, support, size) in zip(heads, bodies, numbers, strict=True):
        conclusion = _atom(head, -1, _value(c), predicates)
        condition = _atom(body, -1, _value(d), predicates)
        rules.append(Rule("", round(weight, 6), conclusion, (condition,), support, size))
    return rules


def _value(value: int) -> int:
    return {ANY: -2, SELF: -1}.get(value, value + 1)


def _atom(relation: int, first: int, second: int, predicates: int) -> Atom:
    if relation < predicates:
        return relation + 1, first, second
    return relation - predicates + 1, second, first
