"""Play several episodes of each instance and keep the best: samples, first actions, or a search.

Every method steps copies of the same roots, so all of them decide on the same instances. Where transitions
are random, the best of several episodes is also the luckiest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.config.seeds import derive_seed
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy, encode_once
from edgewise.evaluation.active_search import active
from edgewise.evaluation.beam_search import (
    WORLDS,
    WORLDS_OF_INSTANCES,
    beam,
    distribution_of,
    guided,
    listed,
    log_probabilities,
    part_of,
)
from edgewise.evaluation.episodes import Progress, Tally, play
from edgewise.graphs.legal_choices import take_in_order
from edgewise.search.tree import TreeSearch

SAMPLES_OF_INSTANCES = 16
"""Sampled episodes of an instance that such a policy plays at once."""


def decode(
    env: GraphEnv[Any],
    policy: Policy,
    root: TensorDictBase,
    *,
    how: Decoding,
    limit: int,
    seed: int,
    reseed: Callable[[int], None],
    progress: Progress | None = None,
) -> tuple[Tally, int]:
    """Play every instance in the way that `how` says, and keep the episode with the highest return.

    Args:
        env: steps the worlds; any number of them.
        policy: sets `action`.
        root: of the instances, `[B]`.
        how: the decoding.
        limit: largest number of steps of an episode.
        seed: from which the seeds of sampled actions and random transitions follow.
        reseed: seeds the generators that the policy samples from.
        progress: called every few steps with the number of episodes done, their number, and the steps so far.

    Returns:
        The best episode of each instance, and the number of episodes per instance that it was chosen from.

    Raises:
        ConfigError: the environment or the policy does not fit this decoding.
    """
    if root.get("player", None) is not None:
        raise ConfigError(
            f"decode: got {how}, but {env.name} is a game of two players: the best of several games has no "
            "meaning",
            hint="leave decode out",
        )

    if how.kind == "search" and not isinstance(policy, TreeSearch):
        raise ConfigError(
            f"decode: got {how}, which needs the critic of a run",
            hint="use `edgewise eval RUN --decode search:N`",
        )
    if how.symmetries:
        every = _symmetric_roots(env, root, how)
        plain = replace(how, symmetries=False)
        found, episodes = decode(
            env, policy, every, how=plain, limit=limit, seed=seed, reseed=reseed, progress=progress
        )
        best = found.team_returns().view(len(root), -1).argmax(-1)
        first = torch.arange(len(root), device=best.device) * env.num_symmetries
        return found.select(first + best), episodes * env.num_symmetries

    def seeded(number: int) -> None:
        """Give every pass its own randomness, whatever passes there are besides."""
        reseed(derive_seed(seed, f"decode/{number}"))
        env.set_seed(derive_seed(seed, f"decode/env/{number}"))

    if how.kind == "sample":
        assert how.width is not None
        with set_exploration_type(ExplorationType.RANDOM):
            return _best_of(
                env,
                policy,
                root,
                count=how.width,
                first=None,
                limit=limit,
                seeded=seeded,
                progress=progress,
            )
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        if how.kind == "beam":
            assert how.width is not None
            seeded(0)
            return beam(env, policy, root, how=how, limit=limit, progress=progress), how.width
        if how.kind == "guided":
            assert how.width is not None
            seeded(0)
            return guided(env, policy, root, how=how, limit=limit, progress=progress), how.width
        if how.kind == "active":
            return active(env, policy, root, how=how, limit=limit, seeded=seeded, progress=progress)
        if how.kind == "multistart":
            first = _first_actions(env, policy, root, how=how)
            return _best_of(
                env,
                policy,
                root,
                count=first.shape[1],
                first=first,
                limit=limit,
                seeded=seeded,
                progress=progress,
            )
        seeded(0)
        if how.kind == "search":
            return play(env.simulate, policy, root, limit=limit, progress=progress)[0], 1
        acting, root = encode_once(policy, root)
        return play(env.simulate, acting, root, limit=limit, progress=progress)[0], 1


def _best_of(
    env: GraphEnv[Any],
    policy: Policy,
    root: TensorDictBase,
    *,
    count: int,
    first: Tensor | None,
    limit: int,
    seeded: Callable[[int], None],
    progress: Progress | None,
) -> tuple[Tally, int]:
    """Play `count` episodes of each instance, with `first [B, count]` actions if given; keep the best.

    A pass plays a number of copies that does not depend on `count`, and drops those beyond it. So the first
    episodes of a larger count are those of a smaller one, and the best return never falls with `count`.
    """
    instances, given = len(root), policy
    policy, root = encode_once(policy, root)
    worlds = WORLDS if policy is given else WORLDS_OF_INSTANCES
    most = worlds if policy is given else SAMPLES_OF_INSTANCES
    copies = max(1, min(worlds // instances, most if first is None else count))
    if first is not None and policy is not given:
        # Equal passes, so that none plays first actions again.
        copies = -(-count // -(-count // copies))
    rows = torch.arange(instances, device=root["done"].device)
    # Policies that encode once need the worlds of an instance next to each other.
    spread = rows.repeat(copies) if policy is given else rows.repeat_interleave(copies)
    back = torch.arange(len(spread), device=rows.device)
    back = back if policy is given else back.view(instances, copies).T.reshape(-1)
    best: list[Tally] = []
    for number, begin in enumerate(range(0, count, copies)):
        seeded(number)
        chosen = None
        if first is not None:
            places = torch.arange(begin, begin + copies, device=first.device) % count
            chosen = first[:, places].T.reshape(-1)[back.argsort()]
        kept = torch.arange(min(copies, count - begin) * instances, device=rows.device)
        tally, _, _ = play(
            env.simulate,
            policy,
            root[spread],
            limit=limit,
            first=chosen,
            progress=part_of(progress, begin * instances, len(kept), count * instances),
        )
        played = Tally.cat([*best, tally.select(back[kept])])
        winner = played.team_returns().view(-1, instances).argmax(0)
        best = [played.select(winner * instances + rows)]
    return best[0], count


def _symmetric_roots(env: GraphEnv[Any], root: TensorDictBase, how: Decoding) -> TensorDictBase:
    """Return the roots of every symmetry of each instance, `[B * K]`, those of an instance together."""
    if env.num_symmetries < 2:
        raise ConfigError(
            f"decode: got {how}, but {env.name} knows no symmetries",
            hint="set `num_symmetries` and define `apply_symmetry`, or leave +symmetries out",
        )
    rows = torch.arange(len(root), device=root["done"].device).repeat_interleave(env.num_symmetries)
    number = torch.arange(env.num_symmetries, device=rows.device).repeat(len(root))
    return env.under_symmetries(root[rows], number)


def _first_actions(env: GraphEnv[Any], policy: Policy, root: TensorDictBase, *, how: Decoding) -> Tensor:
    """Return the first actions of a multistart, the most probable first, `[B, N]`."""
    legal = listed(env, root, how)
    count = int(legal.sum(-1).max()) if how.width is None else min(how.width, int(legal.sum(-1).max()))
    get_dist = distribution_of(policy)
    priority = (
        torch.zeros_like(legal, dtype=torch.float32)
        if get_dist is None
        else log_probabilities(get_dist(root), legal)
    )
    return take_in_order(priority, legal, count)
