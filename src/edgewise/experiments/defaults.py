"""Settings for any environment with any algorithm, sized by the environment; recipes are presets on top."""

from __future__ import annotations

from typing import Any, cast

from pydantic import ValidationError

from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer
from edgewise.config.model import Config
from edgewise.config.run import AnyRun, RunConfig
from edgewise.plugins import Environment, algorithm, environment
from edgewise.plugins.addresses import Address

DEFAULT_ALGORITHM = "ppo"
FRAMES = 200_000
BATCH = 2_048
"""Frames of a batch that is learnt from once."""
GAMES = 24
"""Evaluation games against every opponent, and as many in self-play: a tenth of a short run at most."""
BOARDS = 64
"""Positions of an update of an off-policy algorithm."""


def defaults(env_name: str, algorithm_name: str | None = None) -> tuple[Layer, type[AnyRun]]:
    """Return the default settings of an environment with an algorithm, and their schema.

    Args:
        env_name: name or address of the environment.
        algorithm_name: name or address of the algorithm; PPO if not given.

    Raises:
        ConfigError: one of them does not exist, or the pair does not fit.
    """
    chosen = algorithm_name or DEFAULT_ALGORITHM
    entry, learner = environment(env_name), algorithm(chosen)
    env_config: type[Config] = entry.load("config")
    settings: type[Config] = learner.load("config")
    is_game = _is_game(entry, env_config)
    if is_game:
        settings = learner.load("self_play_config")
        if settings is None:
            raise ConfigError(
                f"{chosen} cannot learn {env_name}, a game of two players",
                hint=f"use --algorithm {DEFAULT_ALGORITHM}, which learns it by self-play",
            )
    usual: type[Config] = learner.load("model")
    special = entry.load("model") if learner.model is None else None
    schema = cast(type[AnyRun], RunConfig.__class_getitem__((env_config, special or usual, settings)))
    short = short_name(env_name)
    values = {
        "recipe": None,
        "env_name": env_name,
        "algorithm_name": chosen,
        "name": short if algorithm_name is None else f"{short}-{short_name(chosen)}",
        "env": {},
        "model": {},
        "algorithm": _replay(settings, is_game=is_game),
        **_sizes(env_config, settings, is_game=is_game),
    }
    return Layer(f"the defaults for {short} with {short_name(chosen)}", values), schema


def short_name(reference: str) -> str:
    """Return what a run of an environment or algorithm is called: its name, or that of its file or class.

    Example:
        >>> short_name("graphwalk"), short_name("problems/tsp.py:TSPEnv"), short_name("my_package.tsp:TSPEnv")
        ('graphwalk', 'tsp', 'tsp')
    """
    address = Address.parse(reference)
    if address is None:
        return reference
    name = address.name or address.place.rpartition("/")[2].removesuffix(".py")
    return name.removesuffix("Env").lower().strip("_") or "run"


def _replay(settings: type[Config], *, is_game: bool) -> dict[str, Any]:
    """Settings of an off-policy algorithm for a short run: a small replay buffer, an update per 16 steps.

    A board has several times as many nodes as most graphs, so that updates on positions have fewer of them.
    """
    if not issubclass(settings, OffPolicyConfig):
        return {}
    found = {"replay_size": FRAMES // 4, "updates_per_transition": 1 / 16, "learning_starts": BATCH}
    return {**found, "minibatch_size": BOARDS} if is_game else found


def _sizes(env_config: type[Config], settings: type[Config], *, is_game: bool) -> dict[str, Any]:
    """Worlds, rollout length, exploration and evaluation for an environment's longest episode."""
    horizon, off_policy = _horizon(env_config), issubclass(settings, OffPolicyConfig)
    length = 8 if off_policy else max(8, min(32, horizon))
    explores = off_policy and settings.model_fields["epsilon"].default > 0
    schedules = {"epsilon": {"kind": "linear", "start": 1.0, "end": 0.05, "frames": FRAMES // 4}}
    return {
        "training": {
            "total_frames": FRAMES,
            "num_envs": 64 if off_policy else max(8, BATCH // length // 4 * 4),
            "rollout_length": length,
            "schedules": schedules if explores else {},
        },
        "evaluation": {"every": FRAMES // 10, "episodes": GAMES if is_game else 64, "baselines": ["quick"]},
        "checkpoint": {"every": FRAMES // 4},
    }


def _horizon(env_config: type[Config]) -> int:
    field = env_config.model_fields.get("max_steps")
    default = None if field is None else field.get_default(call_default_factory=True)
    return default if isinstance(default, int) else 32


def _is_game(entry: Environment, env_config: type[Config]) -> bool:
    """Whether two players move in turn; asked of a small environment where its declaration does not say."""
    if entry.self_play is not None:
        return entry.self_play
    if isinstance(entry.env, str):
        return False
    try:
        env = entry.load("env")(env_config(), num_envs=1, seed=0)
    except (ValidationError, ConfigError):
        return False
    return env.observation_spec.get("player", None) is not None
