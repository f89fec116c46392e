"""The contract of environments, checked on random rollouts; spec checks alone miss errors between rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs.utils import check_env_specs

from edgewise.config.errors import ConfigError, IllegalActionError
from edgewise.envs.base import GraphEnv
from edgewise.envs.contract_describe import check_described
from edgewise.envs.contract_entries import check_entries, check_flags, check_root
from edgewise.envs.random_rollout import SEED, STEPS, differing, random_policy, rollout
from edgewise.envs.stages import has_no_effect
from edgewise.graphs.actions import ComposedLayout

WORLDS = 6


def check_graph_env(env: GraphEnv[Any]) -> None:
    """Run copies of `env` with random actions and raise if they break the contract; `env` is not changed.

    - TorchRL's specs and the GraphSpec hold; every entry has the right dtype, shape and device.
    - The same seed gives the same rollout, another seed another start. A restored environment continues
      exactly like the saved one.
    - Worlds are independent: another state in one row changes no other row.
    - A step does not change its input; a reset changes only its rows, and starts those that are done again.
    - Every state that was reached has a legal action, and illegal actions can be told from legal ones.
    - A time limit truncates and does not terminate. A world is done if it is terminated or truncated.
    - An agent that has ended stays so: it is inactive, and gets no reward. A world without active agents is
      done.
    - Padding has no effect: actions of inactive agents change nothing and get no reward. No edge joins an
      absent node, and none can be chosen.
    - A stage has an effect: every setting that it may change changes the worlds.

    Raises:
        AssertionError: with the rule that is broken, the entry and the world.

    Example:
        >>> check_graph_env(make_env("graphwalk"))
    """
    for check in CHECKS:
        check(env)


def check_first_step(env: GraphEnv[Any]) -> None:
    """Check the cheap part of the contract: the entries of one step, the same seed, and independent worlds.

    A run does this before it trains an environment from outside. `check_graph_env` looks for more.

    Raises:
        ConfigError: with the entry, and what it must be.
    """
    twin = _copy(env, worlds=2)
    try:
        root = twin.reset()
        check_root(twin, root)
        before = root.clone()
        following = twin.step(random_policy(twin)(root.copy()))["next"]
        _expect_equal(before, root, f"a step of {env.name} writes into its input")
        check_flags(twin, root, following)
        check_entries(twin, following)
        _seeds(env, steps=2)
        _rows(env)
    except AssertionError as error:
        raise ConfigError(str(error), hint="`edgewise envs check` looks for further faults") from error


def _copy(env: GraphEnv[Any], *, seed: int = SEED, worlds: int = WORLDS, **changed: Any) -> GraphEnv[Any]:
    """Return the environment with its own worlds; `changed` replaces config fields without validation."""
    built_with = env.built_with.model_copy(update=changed)
    twin = type(env)(built_with, num_envs=worlds, seed=seed, device=env.device)
    twin.follow(env.config.model_copy(update=changed))
    return twin


def _root_midway(env: GraphEnv[Any], steps: int = 3) -> TensorDictBase:
    """Return a root some steps into an episode, with an action."""
    act, root = random_policy(env), env.reset()
    for _ in range(steps):
        _, root = env.step_and_maybe_reset(act(root))
    return act(root)


def _expect_equal(left: TensorDictBase, right: TensorDictBase, complaint: str) -> None:
    for name, rows in differing(left, right).items():
        raise AssertionError(f"{complaint}: `{name}` differs in world {int(rows.nonzero()[0])}")


def _specs(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    try:
        with _quiet():
            check_env_specs(twin, break_when_any_done="both")
    except (AssertionError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise AssertionError(f"the specs of {env.name} do not hold: {error}") from error


def _entries(env: GraphEnv[Any]) -> None:
    """Check every root and every next, with a time limit that is reached."""
    twin = _copy(env) if env.max_steps is None else _copy(env, max_steps=min(env.max_steps, STEPS // 2))
    act, root = random_policy(twin), twin.reset()
    for _ in range(STEPS):
        check_root(twin, root)
        stepped, root = twin.step_and_maybe_reset(act(root))
        check_entries(twin, stepped["next"])
        check_flags(twin, stepped, stepped["next"])


def _seeds(env: GraphEnv[Any], steps: int = STEPS) -> None:
    first, second, other = _copy(env), _copy(env), _copy(env, seed=SEED + 1)
    for (root, following), (root_again, following_again) in zip(
        rollout(first, steps), rollout(second, steps), strict=True
    ):
        complaint = f"two copies of {env.name} with one seed have different rollouts"
        _expect_equal(root, root_again, complaint)
        _expect_equal(following, following_again, complaint)
    first.set_seed(SEED)
    start = first.reset()["state"]
    by_chance = bool(differing(start[1:], start[:1].expand(WORLDS - 1)))
    if by_chance and not differing(start, other.reset()["state"]):
        raise AssertionError(f"{env.name} starts the same way with every seed: it ignores `self.generator`")


def _saved_state(env: GraphEnv[Any]) -> None:
    twin, other = _copy(env), _copy(env, seed=SEED + 1)
    root = _root_midway(twin)
    saved = twin.state_dict()
    ahead = twin.step_and_maybe_reset(root.copy())[0]["next"]
    restarted = twin.reset()
    for player in (twin, other):
        player.load_state_dict(saved)
        complaint = f"{env.name} does not continue like the saved environment after load_state_dict"
        _expect_equal(ahead, player.step_and_maybe_reset(root.copy())[0]["next"], complaint)
        _expect_equal(restarted, player.reset(), complaint)


def _rows(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    root, foreign = _root_midway(twin), _root_midway(twin, steps=1)
    mixed = root.clone()
    mixed[0] = foreign[1]
    saved = twin.state_dict()
    alone = twin.step(root.copy())["next"]
    twin.load_state_dict(saved)
    beside = twin.step(mixed)["next"]
    _expect_equal(
        alone[1:], beside[1:], f"worlds of {env.name} depend on each other: with another world in row 0"
    )


def _input(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    root = _root_midway(twin)
    before = root.clone()
    twin.step(root.copy())
    _expect_equal(before, root, f"a step of {env.name} writes into its input")


def _resets(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    root = _root_midway(twin)
    before = root.clone()
    chosen = torch.arange(WORLDS, device=env.device) % 2 == 0
    after = twin.reset(root.copy().set("_reset", chosen.unsqueeze(-1)))
    complaint = f"a reset of some worlds of {env.name} changes another"
    _expect_equal(before.select(*after.keys())[~chosen], after[~chosen], complaint)
    _expect_equal(before, root, f"a reset of {env.name} writes into tensors it was given")
    if after["state", "step"][chosen].any() or after["done"][chosen].any():
        raise AssertionError(f"worlds of {env.name} are not new after a reset: step or done is set")


def _resets_of_done_worlds(env: GraphEnv[Any]) -> None:
    """Reset some of several worlds that are done."""
    twin = _copy(env)
    root = _root_midway(twin)
    for name in ("done", "terminated"):
        root.set(name, torch.ones_like(root[name]))
    chosen = torch.arange(WORLDS, device=env.device) % 2 == 0
    after = twin.reset(root.set("_reset", chosen.unsqueeze(-1)))
    if after["done"][chosen].any() or after["terminated"][chosen].any():
        raise AssertionError(f"worlds of {env.name} that were done are still done after a reset")
    if not (after["done"] & after["terminated"])[~chosen].all():
        raise AssertionError(f"a reset of some worlds of {env.name} changes another: `done` is cleared")


def _illegal_actions(env: GraphEnv[Any]) -> None:
    """Offer actions out of range, and actions that the mask forbids."""
    twin = _copy(env)
    root = _root_midway(twin)
    twin.check_actions = True
    twin.step(root.copy())
    for illegal in (*_illegal(root), *_illegal_parts(twin, root)):
        try:
            twin.step(root.copy().set("action", illegal))
        except IllegalActionError:
            continue
        raise AssertionError(
            f"{env.name}: {type(env.actions).__name__}.is_legal accepts an illegal action, "
            f"such as {illegal[0].flatten()[:8].tolist()}"
        )


def _illegal(root: TensorDictBase) -> Iterator[Tensor]:
    """Yield actions of which one in world 0 is illegal."""
    action, mask = root["action"], root.get("action_mask", None)
    wrong = action.clone()
    if action.is_floating_point():
        wrong[0] = torch.nan
        yield wrong
    elif action.dtype == torch.int64:
        for value in (-1, 10**9):
            outside = action.clone()
            outside[0] = value
            yield outside
        if mask is not None and mask.shape[:-1] == action.shape and not mask[0].all():
            place = (~mask[0]).nonzero()[0].tolist()
            wrong[(0, *place[:-1])] = place[-1]
            yield wrong


def _illegal_parts(env: GraphEnv[Any], root: TensorDictBase) -> Iterator[Tensor]:
    """Yield composed actions in which one choice of world 0 is illegal, part by part."""
    if not isinstance(env.actions, ComposedLayout):
        return
    nodes, edges = env.actions.slots(root, env.graph)
    values: dict[str, Tensor] = {}
    first = 0
    for part in env.actions.parts:
        width = part.width(nodes, edges)
        columns = root["action"][:, first : first + width]
        legal = part.legal(root, env.graph, values)
        if legal is not None and part.is_single_choice and not legal[0].all():
            wrong = root["action"].clone()
            wrong[0, first] = int((~legal[0]).nonzero()[0])
            yield wrong
        values[part.name] = part.value_of(columns)
        first += width


def _ended_agents(env: GraphEnv[Any]) -> None:
    """End one agent of every world that has several, and step: it must not come back."""
    if env.num_agents < 2:
        return
    twin = _copy(env)
    root = _root_midway(twin).clone()
    active = root["state", "active"]
    first = torch.zeros_like(active).scatter(-1, active.int().argmax(-1, keepdim=True), True)
    ended = first & active & (active.sum(-1, keepdim=True) > 1)
    for place in ("state", "agents"):
        root[place, "active"] = active & ~ended
        root[place, "terminated"] = root[place, "terminated"] | ended
    after = twin.step(root)["next"]
    wrong = ended & (after["agents", "active"] | ~after["agents", "terminated"])
    wrong = wrong | (ended & (after["reward"].squeeze(-1) != 0))
    if wrong.any():
        world = int(wrong.any(-1).nonzero()[0])
        raise AssertionError(f"{env.name}: an agent that had ended comes back in world {world}")


def _limits(env: GraphEnv[Any]) -> None:
    """Compare two copies that differ only in their time limit, up to the shorter one."""
    if env.max_steps is None or env.hold == "episode":
        return
    actions = 3
    limit = actions * env.hold
    short, long = _copy(env, max_steps=limit), _copy(env, max_steps=2 * limit)
    (*_, (_, following)), (*_, (_, expected)) = rollout(short, actions), rollout(long, actions)
    if (following["terminated"] & ~expected["terminated"]).any():
        raise AssertionError(
            f"{env.name} terminates at its time limit; leave limits to `max_steps`, or, if the number of "
            "steps is part of the problem, terminate by a setting of another name"
        )
    if not following["done"][following["state", "step"] >= limit].all():
        raise AssertionError(f"{env.name} continues beyond max_steps")


def _idle_agents(env: GraphEnv[Any]) -> None:
    """Compare two copies whose actions differ only for inactive agents."""
    if not env.num_agents:
        return
    one, two = _copy(env), _copy(env)
    act, root, other = random_policy(one), one.reset(), two.reset()
    for _ in range(STEPS):
        root, moved = act(root), act(other)["action"]
        active = root["agents", "active"]
        active = active.view(*active.shape, *[1] * (moved.ndim - active.ndim))
        other.set("action", torch.where(active, root["action"], moved))
        (stepped, root), (beside, other) = one.step_and_maybe_reset(root), two.step_and_maybe_reset(other)
        complaint = f"actions of inactive agents of {env.name} have an effect"
        _expect_equal(_visible(stepped["next"]), _visible(beside["next"]), complaint)


def _visible(entries: TensorDictBase) -> TensorDictBase:
    """Return `entries` without the state, with zeros for the features of absent nodes and edges."""
    seen = entries.exclude("state")
    for mask, names in (("node_mask", ("x", "pos", "node_type")), ("edge_mask", ("edge_attr",))):
        for name in names:
            value = seen.get(("graph", name), None)
            if value is not None:
                exists = seen["graph", mask].view(*seen["graph", mask].shape, *[1] * (value.ndim - 2))
                seen["graph", name] = value.masked_fill(~exists, 0)
    return seen


def _stages(env: GraphEnv[Any]) -> None:
    """Vary every setting that a stage may change; each must change something, and fit."""
    for name, value in _other_settings(env):
        twin = _copy(env)
        try:
            twin.apply_stage(**{name: value})
        except ConfigError:
            continue
        if has_no_effect(env, twin.config):
            raise AssertionError(
                f"a stage of {env.name} with {name}={value} changes nothing, and a new environment with it "
                "is different: read it as `self.config` in `spawn`, `advance` or `observe`"
            )
        check_root(twin, twin.reset())


def _other_settings(env: GraphEnv[Any]) -> Iterator[tuple[str, Any]]:
    """Yield other values for numbers and ranges among the settings that stages may change."""
    for name in type(env.config).model_fields if env.stage_settings is None else env.stage_settings:
        match getattr(env.built_with, name):
            case bool():
                continue
            case int(value):
                yield from ((name, value - 1), (name, value + 1))
            case float(value):
                yield from ((name, other) for other in (value / 2, 20 * value + 1) if other != value)
            case (int() | float() as low, int() | float() as high) if low < high:
                yield from ((name, (low, low)), (name, (high, high)))


def _described(env: GraphEnv[Any]) -> None:
    twin = _copy(env)
    check_described(twin, rollout(twin))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress TorchRL's message of success."""
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
    _resets_of_done_worlds,
    _illegal_actions,
    _ended_agents,
    _limits,
    _idle_agents,
    _stages,
    _described,
)
