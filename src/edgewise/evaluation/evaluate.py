"""Evaluate a policy on a fixed set of instances: all worlds as one batch, one episode each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torchrl.envs import EnvBase
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.legality import checked_actions
from edgewise.envs.policy import Policy, encode_once
from edgewise.evaluation.decoding import decode as decode_instances
from edgewise.evaluation.episodes import Progress, Tally, play
from edgewise.evaluation.result import Evaluation

MAX_STEPS = 100_000
"""Limit of an episode if neither the caller nor the environment's config sets one."""


class EnvFactory(Protocol):
    """Builds an environment, such as `functools.partial(make_env, "graphwalk")`."""

    def __call__(self, *, num_envs: int, seed: int) -> EnvBase:
        """Build an environment of `num_envs` worlds."""


def evaluate(
    env: EnvBase | EnvFactory,
    policy: Policy,
    *,
    episodes: int,
    seed: int,
    deterministic: bool = True,
    max_steps: int | None = None,
    record: int = 0,
    progress: Progress | None = None,
    start: TensorDictBase | None = None,
    decode: Decoding | None = None,
) -> Evaluation:
    """Run one episode in each of `episodes` worlds, as one batch.

    A world that is done is kept at its last observation and no longer counted while the others continue.
    Since nothing is reset, random numbers of the others do not depend on when it ended. Global random states
    are left unchanged. On a CPU, an illegal action raises IllegalActionError.

    Args:
        env: an environment of `episodes` worlds, or a function that builds one. The random state of a given
            environment is restored afterwards.
        policy: any callable that sets `action`; modules are put in evaluation mode.
        episodes: number of worlds.
        seed: seed of the instances and of the actions that the policy samples.
        deterministic: whether the policy acts by its mode instead of sampling.
        max_steps: limit of an episode; that of the environment if not given.
        record: number of worlds to record, the first ones.
        progress: called every few steps.
        start: initial `state` of the worlds, `[episodes]`; sampled by the environment from `seed` if not
            given.
        decode: plays several episodes of each instance and keeps the best; None for one. Needs a `GraphEnv`,
            replaces `deterministic`, and records nothing.
    """
    if not 0 <= record <= episodes or episodes < 1:
        raise ValueError(f"record must be in [0, episodes] and episodes above 0, got {record} and {episodes}")
    world = env if isinstance(env, EnvBase) else env(num_envs=episodes, seed=seed)
    if tuple(world.batch_size) != (episodes,):
        raise ValueError(
            f"{episodes} episodes need an environment of batch [{episodes}], got {world.batch_size}"
        )
    mode = ExplorationType.DETERMINISTIC if deterministic else ExplorationType.RANDOM
    limit = max_steps or getattr(getattr(world, "config", None), "max_steps", None) or MAX_STEPS
    if decode is not None and (record or not isinstance(world, GraphEnv)):
        raise ConfigError(f"decode: got {decode}, which needs a GraphEnv and records no episodes")
    with (
        _isolated_randomness(world, seed, restore=world is env),
        _evaluation_mode(policy),
        checked_actions(world),
        set_exploration_type(mode),
        torch.no_grad(),
    ):
        world.set_seed(seed)
        root = world.reset() if start is None else _reset_to(world, start)
        if decode is not None:
            best, episodes_each = decode_instances(
                world,
                policy,
                root,
                how=decode,
                limit=limit,
                seed=seed,
                reseed=_seed_torch,
                progress=progress,
            )
            found = _evaluation(best, world, seed=seed, deterministic=decode.kind != "sample")
            return replace(found, decode=str(decode), trajectories=episodes_each)
        acting, root = encode_once(policy, root)
        tally, recorded, steps = play(
            lambda acted: world.step(acted)["next"],
            acting,
            root,
            limit=limit,
            record=record,
            progress=progress,
        )
    found = _evaluation(tally, world, seed=seed, deterministic=deterministic)
    return replace(
        found,
        recordings=_recordings(recorded, found.lengths + 1),
        recorded_steps=_recordings(steps, found.lengths),
    )


def _reset_to(env: EnvBase, start: TensorDictBase) -> TensorDictBase:
    """Return the root of worlds in the given states, by a partial reset of none of them."""
    none = torch.zeros(*env.batch_size, 1, dtype=torch.bool, device=env.device)
    return env.reset(TensorDict({"state": start.clone(), "_reset": none}, env.batch_size, device=env.device))


def _evaluation(tally: Tally, env: EnvBase, *, seed: int, deterministic: bool) -> Evaluation:
    returns, acted = _numpy(tally.returns), _numpy(tally.acted)
    lengths = _numpy(tally.lengths)
    agent_returns = None
    if returns.ndim == 2:
        agent_returns = np.where(acted, returns, np.nan)
        returns = returns.sum(axis=-1) / np.maximum(acted.sum(axis=-1), 1)
    return Evaluation(
        env=getattr(env, "name", None) or type(env).__name__.removesuffix("Env").lower(),
        seed=seed,
        returns=returns,
        lengths=lengths.astype(np.float64),
        finished=_numpy(tally.finished),
        metrics={name: _numpy(value) for name, value in tally.metrics.items()},
        agent_returns=agent_returns,
        deterministic=deterministic,
    )


def _recordings(recorded: list[TensorDictBase], lengths: Any) -> tuple[TensorDict, ...]:
    """Return the first `lengths` of the records of each world."""
    count = recorded[0].batch_size[0]
    if count == 0:
        return ()
    states = torch.stack(recorded, dim=1).cpu()
    return tuple(states[index, : int(lengths[index])] for index in range(count))


def _numpy(tensor: Tensor) -> Any:
    return tensor.cpu().numpy()


def _cuda_devices() -> list[int]:
    return list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []


def _seed_torch(seed: int) -> None:
    """Seed torch's global generators; that of the CPU alone if CUDA is not in use."""
    (torch.manual_seed if _cuda_devices() else torch.default_generator.manual_seed)(seed)


@contextmanager
def _isolated_randomness(env: EnvBase, seed: int, *, restore: bool) -> Iterator[None]:
    """Seed the global generators, and restore them on exit; `restore` includes the environment."""
    devices = _cuda_devices()
    python, old = random.getstate(), np.random.get_state()
    kept = env.state_dict() if restore else None
    with torch.random.fork_rng(devices=devices):
        _seed_torch(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(old)
            if kept is not None:
                env.load_state_dict(kept)


@contextmanager
def _evaluation_mode(policy: Policy) -> Iterator[None]:
    """Put a module in evaluation mode, and restore its mode on exit."""
    if not isinstance(policy, nn.Module):
        yield
        return
    training = [module for module in policy.modules() if module.training]
    policy.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
