"""Searches over episodes of each instance: beams by probability, and beams guided by simulated episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy, encode_once
from edgewise.evaluation.episodes import CHECK_EVERY, Progress, Tally, play
from edgewise.graphs.legal_choices import legal_choices, take_in_order

WORLDS = 256
"""Worlds that are stepped at once, where that many instances or more are not given."""
WORLDS_OF_INSTANCES = 8192
"""The same for policies that encode an instance once, in which a step costs little."""


def beam(
    env: GraphEnv[Any],
    policy: Policy,
    root: TensorDictBase,
    *,
    how: Decoding,
    limit: int,
    progress: Progress | None,
) -> Tally:
    """Search every instance with a beam, some instances at a time."""
    assert how.width is not None
    listed(env, root, how)
    get_dist = probabilities_of(policy, how)
    at_once = max(1, WORLDS // how.width)
    parts: list[Tally] = []
    for number, part in enumerate(root.split(at_once)):
        before, size = number * at_once * how.width, len(part) * how.width
        shown = part_of(progress, before, size, len(root) * how.width)
        acting, part = encode_once(policy, part)
        found = distribution_of(acting) or get_dist
        parts.append(_beam_of(env, found, part, width=how.width, limit=limit, progress=shown))
    return Tally.cat(parts)


def _beam_of(
    env: GraphEnv[Any],
    get_dist: Callable[[Any], Any],
    root: TensorDictBase,
    *,
    width: int,
    limit: int,
    progress: Progress | None,
) -> Tally:
    """Keep the `width` most probable beginnings of each instance until all end; return the best by return.

    An episode that has ended stays in the beam with its probability. Places of a beam that has fewer
    beginnings hold copies of the most probable one, with a score of minus infinity.
    """
    instances, names = len(root), list(root.keys())
    device = root["done"].device
    score = torch.zeros(instances, 1, dtype=torch.float64, device=device)
    tally = Tally.start(root)
    every = 1 if device.type == "cpu" else CHECK_EVERY
    for step in range(limit):
        legal = legal_choices(env.actions, root, env.graph)
        assert legal is not None
        choices, beams = legal.shape[-1], score.shape[1]
        ended = tally.finished.unsqueeze(-1)
        stays = torch.arange(choices, device=device) == 0
        total = score.reshape(-1, 1) + log_probabilities(get_dist(root), legal).double()
        total = torch.where(ended, score.reshape(-1, 1), total)
        total = total.masked_fill(~torch.where(ended, stays, legal), -torch.inf)
        order = total.view(instances, -1).sort(dim=-1, descending=True, stable=True)
        score, index = (part[:, : min(width, beams * choices)] for part in order)
        index = torch.where(score == -torch.inf, index[:, :1], index)
        rows = (torch.arange(instances, device=device).unsqueeze(-1) * beams + index // choices).reshape(-1)
        action = (index % choices).reshape(-1)
        action = torch.where(tally.finished[rows], legal[rows].long().argmax(-1), action)
        root, tally = root[rows].set("action", action), tally.select(rows)
        following = env.simulate(root)
        tally.add(root, following)
        if progress is not None and (step + 1) % CHECK_EVERY == 0:
            progress(int(tally.finished.sum()), len(rows), step + 1)
        if (step + 1) % every == 0 and bool(tally.finished.all()):
            break
        root = following.select(*names).where(~tally.finished, root.select(*names))
    if progress is not None:
        progress(instances * width, instances * width, step + 1)
    best = tally.team_returns().view(score.shape).argmax(-1)
    return tally.select(torch.arange(instances, device=device) * score.shape[1] + best)


def guided(
    env: GraphEnv[Any],
    policy: Policy,
    root: TensorDictBase,
    *,
    how: Decoding,
    limit: int,
    progress: Progress | None,
) -> Tally:
    """Search every instance with a beam that simulated episodes guide, some instances at a time."""
    assert how.width is not None
    listed(env, root, how)
    probabilities_of(policy, how)
    at_once = max(1, WORLDS_OF_INSTANCES // (4 * how.width**2))
    parts = root.split(at_once)
    found: list[Tally] = []
    for number, part in enumerate(parts):
        found.append(_guided_of(env, policy, part, width=how.width, limit=limit))
        if progress is not None:
            progress(min(len(root), (number + 1) * at_once), len(root), limit)
    return Tally.cat(found)


def _guided_of(env: GraphEnv[Any], policy: Policy, root: TensorDictBase, *, width: int, limit: int) -> Tally:
    """Keep the `width` beginnings of each instance whose greedy continuations have the best returns.

    In each step, every beginning is continued by its `width` most probable actions, and each of these is
    played greedily to its end. The best episode that was seen is kept, so a wider search is rarely worse, and
    never worse than greedy decoding.
    """
    instances, device = len(root), root["done"].device
    acting, root = encode_once(policy, root)
    get_dist = distribution_of(acting)
    assert get_dist is not None
    best = play(env.simulate, acting, root, limit=limit)[0]
    tally, rows = Tally.start(root), torch.arange(instances, device=device)
    # Places of a beam that has fewer beginnings hold copies, which are never continued to something new.
    copied = torch.zeros(instances, dtype=torch.bool, device=device)
    for _ in range(limit):
        beams = len(root) // instances
        legal = legal_choices(env.actions, root, env.graph)
        assert legal is not None
        score = log_probabilities(get_dist(root), legal)
        action = take_in_order(score, legal, width).reshape(-1)
        spread = torch.arange(len(root), device=device).repeat_interleave(width)
        ended = tally.finished[spread]
        place = torch.arange(width, device=device).repeat(len(root))
        again = torch.where(ended, place > 0, place >= legal.sum(-1)[spread]) | copied[spread]
        first_legal = legal[spread].long().argmax(-1)
        tried = root[spread].set("action", torch.where(ended, first_legal, action))
        sums = tally.select(spread)
        following = env.simulate(tried)
        sums.add(tried, following)
        names = [name for name in root.keys() if name in following.keys()]  # noqa: SIM118
        after = following.select(*names).where(~sums.finished, tried.select(*names))
        whole = _continued(env, acting, after, sums, limit=limit)
        returns = whole.team_returns().masked_fill(again, -torch.inf).view(instances, -1)
        winner = returns.argmax(-1) + rows * beams * width
        played = Tally.cat([best, whole.select(winner)])
        choice = played.team_returns().view(2, instances).argmax(0)
        best = played.select(choice * instances + rows)
        kept = returns.topk(min(width, beams * width), -1).indices + rows.unsqueeze(-1) * beams * width
        kept = kept.reshape(-1)
        root, tally, copied = after[kept], sums.select(kept), again[kept]
        if bool(tally.finished.all()):
            break
    return best


def _continued(env: GraphEnv[Any], acting: Policy, root: TensorDictBase, sums: Tally, *, limit: int) -> Tally:
    """Return the sums of episodes that go on greedily from `root`."""
    later = play(env.simulate, acting, root, limit=limit)[0]
    going = ~sums.finished
    counted = going.view(-1, *[1] * (sums.returns.ndim - 1))
    return Tally(
        sums.returns + torch.where(counted, later.returns, 0.0),
        sums.acted | (later.acted & counted),
        sums.lengths + torch.where(going, later.lengths, 0),
        sums.finished | later.finished,
        {name: torch.where(going, value, sums.metrics[name]) for name, value in later.metrics.items()},
    )


def part_of(progress: Progress | None, before: int, size: int, total: int) -> Progress | None:
    """Return what reports the progress of one pass of `size` episodes, after `before` of all `total`."""
    if progress is None:
        return None
    return lambda done, _, steps: progress(before + min(done, size), total, steps)


def listed(env: GraphEnv[Any], root: TensorDictBase, how: Decoding) -> Tensor:
    """Return the legal choices, `[B, C]`.

    Raises:
        ConfigError: legal actions of this layout cannot be listed.
    """
    legal = legal_choices(env.actions, root, env.graph)
    if legal is None:
        raise ConfigError(
            f"decode: got {how}, which lists the legal actions, but those of {type(env.actions).__name__} "
            f"in {env.name} cannot be listed",
            hint="use greedy or sample:N",
        )
    return legal


def log_probabilities(distribution: Any, legal: Tensor) -> Tensor:
    """Return the log-probability of every choice, `[R, C]`; of illegal ones a large negative number."""
    rows, choices = legal.shape
    every = torch.arange(choices, device=legal.device).unsqueeze(-1).expand(choices, rows)
    log_prob: Tensor = distribution.log_prob(every)
    return log_prob.T


def distribution_of(policy: Any) -> Callable[[Any], Any] | None:
    """Return the function from roots to distributions of a policy; None if it has none."""
    for each in (policy, getattr(policy, "policy", None)):
        if (found := getattr(each, "get_dist", None)) is not None:
            return found
    return None


def probabilities_of(policy: Any, how: Decoding) -> Callable[[Any], Any]:
    """Return the function from roots to distributions of a policy.

    Raises:
        ConfigError: it has none.
    """
    found = distribution_of(policy)
    if found is None:
        raise ConfigError(
            f"decode: got {how}, but this policy has no probabilities of actions",
            hint="use greedy, sample:N or multistart",
        )
    return found
