"""Prepares matches between trained runs and baselines, each with the observations it was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.config.model import Config
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.evaluation.instances import changed
from edgewise.experiments.evaluate import environment_of, load_trained
from edgewise.experiments.lookahead import mcts_policy
from edgewise.experiments.opponents import make_opponent, needed_settings
from edgewise.plugins import Environment, environment
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder


@dataclass(frozen=True)
class Contest:
    """An environment and its players.

    Args:
        env: as many worlds as games in a match.
        players: by name.
        checkpoints: those of the trained players, by name.
    """

    env: GraphEnv[Any]
    players: Mapping[str, Policy]
    checkpoints: Mapping[str, Path]


def make_contest(
    runs: Sequence[Path],
    *,
    games: int,
    opponents: Sequence[str],
    settings: Mapping[str, Any],
    snapshots: bool = False,
    which: str = "best",
    search: int = 0,
    device: str = "cpu",
) -> Contest:
    """Build the environment of the first run, changed by `settings`, and all players.

    Args:
        runs: run folders of one environment of two players.
        games: in a match, an even number.
        opponents: names of the environment's hand-written players, or `scheme:rest`, see `make_opponent`.
        settings: fields of the environment's config, such as its size.
        snapshots: whether every checkpoint of a run plays, rather than one.
        which: `best` or `latest` checkpoint.
        search: simulations of a second player of each run, named `RUN+N`, which searches before each move; 0
            for none.
        device: on which to play.
    """
    if games < 2 or games % 2:
        raise ConfigError(
            f"--games: got {games}, expected an even number: every opening is played from both sides"
        )
    places = [place for run in runs for place in (_checkpoints(run) if snapshots else [run])]
    entry = _one_environment(places)
    settings = {**settings, **needed_settings(entry, opponents)}
    trained = [load_trained(place, settings=settings, which=which, device=device) for place in places]
    env = _worlds(entry, trained[0].config.env, games, device=device)
    if env.observation_spec.get("player", None) is None:
        raise ConfigError(
            f"{env.name} is not a game of two players", hint="`edgewise eval` measures its runs"
        )
    players: dict[str, Policy] = {name: make_opponent(entry, env, name) for name in opponents}
    checkpoints = {}
    for place, one in zip(places, trained, strict=True):
        name, own = _name(place, players), _worlds(entry, one.config.env, 1, device=device)
        checkpoints[name], players[name] = one.checkpoint, ReobservingPolicy(own, one.policy)
        if search:
            players[f"{name}+{search}"] = mcts_policy(own, one.algorithm, simulations=search)
    return Contest(env, players, checkpoints)


def exploitability(contest: Contest) -> dict[str, dict[str, float]]:
    """Compute how often the best opponent beats each trained player where perfect play would not lose.

    By board size; empty where the environment has no exact solver.
    """
    entry, device = environment(contest.env.name), str(contest.env.device)
    worst_cases = entry.load("exploitability")
    if worst_cases is None:
        return {}

    def player(place: Path, settings: Mapping[str, Any]) -> tuple[GraphEnv[Any], Policy]:
        one = load_trained(place, settings=settings, device=device)
        return _worlds(entry, one.config.env, 1, device=device), one.policy

    return {name: worst_cases(partial(player, place)) for name, place in contest.checkpoints.items()}


class ReobservingPolicy:
    """A policy that acts on observations of its own environment, computed from the state of another's.

    Args:
        env: the policy's own environment, of the same rules and capacity.
        policy: that acts.
    """

    def __init__(self, env: GraphEnv[Any], policy: Policy) -> None:
        self.env, self.policy = env, policy

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        own = tensordict.copy().update(self.env.whole_observation(tensordict["state"]))
        return tensordict.set("action", self.policy(own)["action"])


def _checkpoints(run: Path) -> list[Path]:
    return checkpoint.saved(RunFolder(run).checkpoints)


def player_name(place: Path) -> str:
    """Return the name of a run or checkpoint as a player."""
    whole = place.resolve()
    is_checkpoint = checkpoint.NAME.fullmatch(place.name)
    return f"{whole.parents[1].name}@{checkpoint.step_of(place)}" if is_checkpoint else whole.name


def _name(place: Path, taken: Mapping[str, Policy]) -> str:
    """Return the name of a run or checkpoint in tables."""
    name = player_name(place)
    while name in taken:
        name += "'"
    return name


def _one_environment(places: Sequence[Path]) -> Environment:
    names = {environment_of(place) for place in places}
    if len(names) != 1:
        raise ConfigError(f"all runs must be of one environment, got {', '.join(sorted(names))}")
    return environment(names.pop())


def _worlds(entry: Environment, config: Config, count: int, *, device: str) -> GraphEnv[Any]:
    return entry.load("env")(changed(config, {}), num_envs=count, seed=0, device=device)
