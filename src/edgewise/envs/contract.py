"""What every environment must keep, checked by playing: a wrong row in a batch passes every spec check."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs.utils import check_env_specs

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.contract_entries import check_entries, check_flags, check_root
from edgewise.graphs.random_actions import random_action

WORLDS = 6
STEPS = 12
SEED = 20


def check_graph_env(env: GraphEnv[Any]) -> None:
    """Play copies of `env` at random and raise where they break the contract; `env` itself is not touched.

    - Specs hold, TorchRL's and the graph's own; entries have the type, shape and device they should have.
    - The same seed gives the same rollout, another seed another start; a saved state goes on as it was.
    - Worlds do not see each other: a foreign state in one row changes no other row.
    - A step leaves its input as it is; a reset touches only its rows.
    - Every state that can be reached has a legal action.
    - A time limit truncates and does not terminate; both mean done; only then is a world done.
    - Padding is silent: what inactive agents do changes nothing and pays nothing; absent nodes are neither
      joined by edges nor open to be chosen.
    - A stage changes only worlds that are born after it.

    Raises:
        AssertionError: with what is broken, and where.

    Example:
        >>> check_graph_env(make_env("graphwalk"))
    """
    for check in CHECKS:
        check(env)


def _copy(env: GraphEnv[Any], *, seed: int = SEED, worlds: int = WORLDS, **changed: Any) -> GraphEnv[Any]:
    """The same environment with its own worlds, and with some fields of its config changed unchecked."""
    config = env.config.model_copy(update=changed)
    twin = type(env)(config, num_envs=worlds, seed=seed, device=env.device)
    twin.stage = env.stage.model_copy(update=changed)
    return twin


def _actor(env: GraphEnv[Any]) -> Callable[[TensorDictBase], TensorDictBase]:
    """A policy that plays the same legal moves at every call of this function."""
    generator = torch.Generator(env.device).manual_seed(SEED)

    def act(root: TensorDictBase) -> TensorDictBase:
        action = random_action(env.actions, env.graph, observation=root, generator=generator)
        return root.set("action", action)

    return act


def _played(env: GraphEnv[Any], steps: int = STEPS) -> Iterator[tuple[TensorDictBase, TensorDictBase]]:
    """Root and next of every step of random play, resets included."""
    act, root = _actor(env), env.reset()
    for _ in range(steps):
        stepped, root = env.step_and_maybe_reset(act(root))
        yield stepped.exclude("next"), stepped["next"]


def _midway(env: GraphEnv[Any], steps: int = 3) -> TensorDictBase:
    """A root some steps into an episode, with an action set."""
    act, root = _actor(env), env.reset()
    for _ in range(steps):
        _, root = env.step_and_maybe_reset(act(root))
    return act(root)


def _differing(left: TensorDictBase, right: TensorDictBase) -> dict[str, Tensor]:
    """Rows `[B]` bool by dotted name of the entries that differ somewhere; NaN equals NaN."""
    found = {}
    for name in left.keys(include_nested=True, leaves_only=True):
        mine, other = left[name], right[name]
        same = (mine == other) | ((mine != mine) & (other != other))
        if not same.all():
            found[name if isinstance(name, str) else ".".join(name)] = ~same.reshape(len(same), -1).all(-1)
    return found


def _expect_equal(left: TensorDictBase, right: TensorDictBase, complaint: str) -> None:
    for name, rows in _differing(left, right).items():
        raise AssertionError(f"{complaint}: `{name}` differs in world {int(rows.nonzero()[0])}")


def _specs(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    try:
        with _quiet():
            check_env_specs(twin, break_when_any_done="both")
    except (AssertionError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise AssertionError(f"the specs of {env.name} do not hold: {error}") from error


def _entries(env: GraphEnv[Any]) -> None:
    """Every root and every next, with a limit short enough to be met."""
    twin = _copy(env) if env.max_steps is None else _copy(env, max_steps=min(env.max_steps, STEPS // 2))
    act, root = _actor(twin), twin.reset()
    for _ in range(STEPS):
        check_root(twin, root)
        stepped, root = twin.step_and_maybe_reset(act(root))
        check_entries(twin, stepped["next"])
        check_flags(twin, stepped, stepped["next"])


def _seeds(env: GraphEnv[Any]) -> None:
    first, second, other = _copy(env), _copy(env), _copy(env, seed=SEED + 1)
    for (root, following), (root_again, following_again) in zip(_played(first), _played(second), strict=True):
        complaint = f"two copies of {env.name} with one seed play differently"
        _expect_equal(root, root_again, complaint)
        _expect_equal(following, following_again, complaint)
    first.set_seed(SEED)
    start = first.reset()["state"]
    by_chance = bool(_differing(start[1:], start[:1].expand(WORLDS - 1)))
    if by_chance and not _differing(start, other.reset()["state"]):
        raise AssertionError(f"{env.name} starts alike whatever its seed: it ignores `self.generator`")


def _saved_state(env: GraphEnv[Any]) -> None:
    twin, other = _copy(env), _copy(env, seed=SEED + 1)
    root = _midway(twin)
    saved = twin.state_dict()
    ahead = twin.step_and_maybe_reset(root.copy())[0]["next"]
    births = twin.reset()
    for player in (twin, other):
        player.load_state_dict(saved)
        complaint = f"{env.name} does not go on as it would have after load_state_dict"
        _expect_equal(ahead, player.step_and_maybe_reset(root.copy())[0]["next"], complaint)
        _expect_equal(births, player.reset(), complaint)


def _rows(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    root, foreign = _midway(twin), _midway(twin, steps=1)
    mixed = root.clone()
    mixed[0] = foreign[1]
    saved = twin.state_dict()
    alone = twin.step(root.copy())["next"]
    twin.load_state_dict(saved)
    beside = twin.step(mixed)["next"]
    _expect_equal(alone[1:], beside[1:], f"worlds of {env.name} see each other: with another world in row 0")


def _input(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    root = _midway(twin)
    before = root.clone()
    twin.step(root.copy())
    _expect_equal(before, root, f"a step of {env.name} writes into its input")


def _resets(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    root = _midway(twin)
    before = root.clone()
    chosen = torch.arange(WORLDS, device=env.device) % 2 == 0
    after = twin.reset(root.copy().set("_reset", chosen.unsqueeze(-1)))
    complaint = f"a reset of some worlds of {env.name} touches another"
    _expect_equal(before.select(*after.keys())[~chosen], after[~chosen], complaint)
    _expect_equal(before, root, f"a reset of {env.name} writes into tensors it was given")
    if after["state", "step"][chosen].any() or after["done"][chosen].any():
        raise AssertionError(f"worlds of {env.name} are not new after a reset: step or done is set")


def _limits(env: GraphEnv[Any]) -> None:
    """Two copies that differ in their limit alone play alike up to the shorter one."""
    if env.max_steps is None:
        return
    limit = 3
    short, long = _copy(env, max_steps=limit), _copy(env, max_steps=2 * limit)
    (*_, (_, following)), (*_, (_, expected)) = _played(short, limit), _played(long, limit)
    if (following["terminated"] & ~expected["terminated"]).any():
        raise AssertionError(f"{env.name} calls its time limit a termination; leave limits to `max_steps`")
    if not following["done"][following["state", "step"] >= limit].all():
        raise AssertionError(f"{env.name} goes on beyond max_steps")


def _idle_agents(env: GraphEnv[Any]) -> None:
    """Two copies play alike but for the moves of agents that are not active."""
    if not env.num_agents:
        return
    one, two = _copy(env), _copy(env)
    act, root, other = _actor(one), one.reset(), two.reset()
    for _ in range(STEPS):
        root, moved = act(root), act(other)["action"]
        active = root["agents", "active"]
        active = active.view(*active.shape, *[1] * (moved.ndim - active.ndim))
        other.set("action", torch.where(active, root["action"], moved))
        (stepped, root), (beside, other) = one.step_and_maybe_reset(root), two.step_and_maybe_reset(other)
        complaint = f"what inactive agents of {env.name} do changes something"
        _expect_equal(_visible(stepped["next"]), _visible(beside["next"]), complaint)


def _visible(entries: TensorDictBase) -> TensorDictBase:
    """`entries` without the state, and with zeros for what is said of nodes and edges that do not exist."""
    seen = entries.exclude("state")
    for mask, names in (("node_mask", ("x", "pos", "node_type")), ("edge_mask", ("edge_attr",))):
        for name in names:
            value = seen.get(("graph", name), None)
            if value is not None:
                exists = seen["graph", mask].view(*seen["graph", mask].shape, *[1] * (value.ndim - 2))
                seen["graph", name] = value.masked_fill(~exists, 0)
    return seen


def _stages(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    twin.stage = twin.config
    root, saved = _midway(twin), twin.state_dict()
    before = twin.step(root.copy())["next"]
    for name, value in _other_settings(twin):
        twin.load_state_dict(saved)
        try:
            twin.apply_stage(**{name: value})
        except ConfigError:
            continue
        complaint = f"a stage of {env.name} with {name}={value} changes worlds that were born before it"
        _expect_equal(before, twin.step(root.copy())["next"], complaint)


def _other_settings(env: GraphEnv[Any]) -> Iterator[tuple[str, Any]]:
    """Other values to try for the settings that stages may change and that are numbers or ranges."""
    for name in env.stage_settings:
        match getattr(env.config, name):
            case bool():
                continue
            case int(value):
                yield from ((name, value - 1), (name, value + 1))
            case float(value):
                yield from ((name, value / 2), (name, 20 * value + 1))
            case (int() | float() as low, int() | float() as high) if low < high:
                yield from ((name, (low, low)), (name, (high, high)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without TorchRL's note of success."""
    logger = logging.getLogger("torchrl")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


CHECKS = (
    _entries,
    _specs,
    _seeds,
    _saved_state,
    _rows,
    _input,
    _resets,
    _limits,
    _idle_agents,
    _stages,
)
