"""Evaluate a policy on a fixed set of instances: all worlds as one batch, one episode each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torchrl.envs import EnvBase
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.evaluation.result import Evaluation
from edgewise.graphs.keys import RECURRENT
from edgewise.graphs.policy import Policy

MAX_STEPS = 100_000
"""Limit of an episode if neither the caller nor the environment's config sets one."""

CHECK_EVERY = 16
"""Steps between checks whether all worlds are done; each check synchronises with the device."""

Progress = Callable[[int, int, int], None]
"""Called with the number of worlds done, the number of worlds, and the steps so far."""


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
) -> Evaluation:
    """Run one episode in each of `episodes` worlds, as one batch.

    A world that is done is kept at its last observation and no longer counted while the others continue.
    Since nothing is reset, random numbers of the others do not depend on when it ended. Global random states
    are left unchanged.

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
    with (
        _isolated_randomness(world, seed, restore=world is env),
        _evaluation_mode(policy),
        set_exploration_type(mode),
        torch.no_grad(),
    ):
        world.set_seed(seed)
        tally, recorded, steps = _play(
            world, policy, limit=limit, record=record, progress=progress, start=start
        )
    found = _evaluation(tally, world, seed=seed, deterministic=deterministic)
    return replace(
        found,
        recordings=_recordings(recorded, found.lengths + 1),
        recorded_steps=_recordings(steps, found.lengths),
    )


@dataclass
class _Tally:
    """Sums over the steps of each world so far, as tensors on the device."""

    returns: Tensor
    """`[B]`, or `[B, A]` where agents act, float64."""
    acted: Tensor
    """bool, of the shape of `returns`."""
    lengths: Tensor
    finished: Tensor
    metrics: dict[str, Tensor]

    @staticmethod
    def start(root: TensorDictBase) -> _Tally:
        """Return sums of zero."""
        agents = root.get(("agents", "active"), None)
        finished = root["done"].new_zeros(root.batch_size)
        counted = finished if agents is None else torch.zeros_like(agents)
        zeros = counted.new_zeros(counted.shape, dtype=torch.float64)
        return _Tally(zeros, counted, finished.long(), finished, {})

    def add(self, root: TensorDictBase, following: TensorDictBase) -> None:
        """Add one step of the worlds that are not done yet."""
        playing = ~self.finished
        reward = following["reward"].squeeze(-1).to(self.returns.dtype)
        active = root.get(("agents", "active"), None)
        counts = playing if active is None else playing.unsqueeze(-1) & active
        if (player := root.get("player", None)) is not None:
            reward = torch.where(player == 0, reward, -reward)
        self.returns = self.returns + torch.where(counts, reward, 0.0)
        self.acted = self.acted | counts
        self.lengths = self.lengths + playing
        for name, value in _episode_metrics(following).items():
            before = self.metrics.get(name)
            self.metrics[name] = value if before is None else torch.where(playing, value, before)
        self.finished = self.finished | following["done"].reshape(self.finished.shape)


def _play(
    env: EnvBase,
    policy: Policy,
    *,
    limit: int,
    record: int,
    progress: Progress | None,
    start: TensorDictBase | None,
) -> tuple[_Tally, list[TensorDictBase], list[TensorDictBase]]:
    """Step all worlds until each is done; returns the sums, the states `[record]`, and the recorded steps."""
    root = env.reset() if start is None else _reset_to(env, start)
    names = list(root.keys(include_nested=True, leaves_only=True))
    tally, recorded = _Tally.start(root), [_states(root, record)]
    steps: list[TensorDictBase] = []
    for step in range(1, limit + 1):
        acted = policy(root.copy())
        following = env.step(acted)["next"]
        tally.add(root, following)
        recorded.append(_states(following, record))
        steps.append(_step(acted, tally, record))
        carried = following.select(*names, RECURRENT, strict=False)
        root = carried.where(~tally.finished, acted.select(*carried.keys()))
        if step % CHECK_EVERY == 0 or step == limit:
            done = int(tally.finished.sum())
            if progress is not None:
                progress(done, len(tally.finished), step)
            if done == len(tally.finished):
                break
    return tally, recorded, steps


def _reset_to(env: EnvBase, start: TensorDictBase) -> TensorDictBase:
    """Return the root of worlds in the given states, by a partial reset of none of them."""
    none = torch.zeros(*env.batch_size, 1, dtype=torch.bool, device=env.device)
    return env.reset(TensorDict({"state": start.clone(), "_reset": none}, env.batch_size, device=env.device))


def _states(root: TensorDictBase, record: int) -> TensorDictBase:
    return root["state"][:record].clone() if record else TensorDict({}, batch_size=[0])


def _step(acted: TensorDictBase, tally: _Tally, record: int) -> TensorDictBase:
    """Return the action of one step and the return so far, `[record]`."""
    entries = {"action": acted["action"][:record].clone(), "return": tally.returns[:record].clone()}
    return TensorDict(entries if record else {}, batch_size=[record])


def _episode_metrics(following: TensorDictBase) -> dict[str, Tensor]:
    """Return the metrics of the environment, float64 `[B]`, nested names joined by a dot."""
    metrics = following.get("metrics", None)
    if metrics is None:
        return {}
    return {
        name if isinstance(name, str) else ".".join(name): value.reshape(following.batch_size).double()
        for name, value in metrics.items(include_nested=True, leaves_only=True)
    }


def _evaluation(tally: _Tally, env: EnvBase, *, seed: int, deterministic: bool) -> Evaluation:
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


@contextmanager
def _isolated_randomness(env: EnvBase, seed: int, *, restore: bool) -> Iterator[None]:
    """Seed the global generators, and restore them on exit; `restore` includes the environment."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    python, old = random.getstate(), np.random.get_state()
    kept = env.state_dict() if restore else None
    with torch.random.fork_rng(devices=devices):
        (torch.manual_seed if devices else torch.default_generator.manual_seed)(seed)
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
