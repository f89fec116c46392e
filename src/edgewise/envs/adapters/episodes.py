"""Episodes of a simulator that keeps its own state, made repeatable: a seed and the actions taken since.

A graph environment is a pure function of its state. A foreign simulator is not: it can only be reset with a
seed and stepped. `Episodes` closes the gap. A state names an episode by its number and by how many steps were
taken; stepping from a state that the simulator has left resets it with the same seed and repeats the actions.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from edgewise.config.errors import ConfigError

ShownT = TypeVar("ShownT")
ShownT_co = TypeVar("ShownT_co", covariant=True)


class Simulator(Protocol[ShownT_co]):
    """A simulator of one world."""

    def reset(self, seed: int) -> ShownT_co:
        """Start an episode that is a function of `seed` and the actions to come."""

    def step(self, action: Tensor) -> ShownT_co:
        """Take an action."""


@dataclass
class _Episode(Generic[ShownT]):
    seed: int
    actions: list[Tensor] = field(default_factory=list)
    simulator: Simulator[ShownT] | None = None
    last: ShownT | None = None


class Episodes(Generic[ShownT]):
    """The running episodes of a batch of worlds.

    Args:
        make: builds a simulator.
        capacity: number of episodes whose actions are remembered; the least recently stepped are forgotten.
    """

    def __init__(self, make: Callable[[], Simulator[ShownT]], *, capacity: int) -> None:
        self._make, self._capacity = make, capacity
        self._known: OrderedDict[int, _Episode[ShownT]] = OrderedDict()
        self._free: list[Simulator[ShownT]] = []
        self._next = 0

    def start(self, seed: int) -> tuple[int, ShownT]:
        """Start an episode; returns its number and what it shows."""
        episode = _Episode[ShownT](seed, simulator=self._free.pop() if self._free else self._make())
        assert episode.simulator is not None
        shown = episode.simulator.reset(seed)
        return self._add(episode), shown

    def step(self, number: int, seed: int, steps: int, action: Tensor) -> tuple[int, ShownT]:
        """Take an action in an episode after `steps` steps; returns its number and what it shows.

        The number changes if the episode had gone further by other actions, or if it starts anew. The action
        is kept, so nobody may change it afterwards.

        Raises:
            ConfigError: actions were taken, and the episode is not remembered.
        """
        episode = self._known.get(number)
        if episode is None or episode.seed != seed:
            episode = None if steps else _Episode(seed)
            number = number if episode is None else self._add(episode)
        if episode is None or len(episode.actions) < steps:
            raise ConfigError(
                "this state belongs to an episode that is no longer remembered",
                hint="continue from the current states, or from a checkpoint",
            )
        self._known.move_to_end(number)
        if (
            steps == len(episode.actions) - 1
            and episode.last is not None
            and torch.equal(episode.actions[-1], action)
        ):
            return number, episode.last
        if len(episode.actions) > steps:
            episode = _Episode(episode.seed, episode.actions[:steps])
            number = self._add(episode)
        if episode.simulator is None:
            episode.simulator = self._repeat(episode)
        episode.last = episode.simulator.step(action)
        episode.actions.append(action)
        return number, episode.last

    def end(self, number: int) -> None:
        """Release the simulator of an episode that ended."""
        episode = self._known.get(number)
        if episode is not None and episode.simulator is not None:
            self._free.append(episode.simulator)
            episode.simulator = None

    def state_dict(self) -> dict[str, Any]:
        """Return the number, the seed and the actions of every running episode, as text of any length."""
        running = {
            number: [episode.seed, [action.tolist() for action in episode.actions]]
            for number, episode in self._known.items()
            if episode.simulator is not None
        }
        return {"next": self._next, "running": json.dumps(running)}

    def load_state_dict(self, state: Mapping[str, Any], *, dtype: torch.dtype) -> None:
        """Restore `state_dict`; simulators that are where they should be are kept, others repeat.

        Args:
            state: from `state_dict`.
            dtype: of actions.
        """
        kept, self._known = self._known, OrderedDict()
        for name, (seed, actions) in json.loads(state["running"]).items():
            episode = _Episode[ShownT](seed, [torch.tensor(action, dtype=dtype) for action in actions])
            old = kept.pop(int(name), None)
            if old is not None and _is_same(old, episode):
                episode = old
            elif old is not None and old.simulator is not None:
                self._free.append(old.simulator)
            if episode.simulator is None:
                episode.simulator = self._repeat(episode)
            self._known[int(name)] = episode
        self._free.extend(old.simulator for old in kept.values() if old.simulator is not None)
        self._next = int(state["next"])

    def _repeat(self, episode: _Episode[ShownT]) -> Simulator[ShownT]:
        simulator = self._free.pop() if self._free else self._make()
        simulator.reset(episode.seed)
        for action in episode.actions:
            simulator.step(action)
        return simulator

    def _add(self, episode: _Episode[ShownT]) -> int:
        number, self._next = self._next, self._next + 1
        self._known[number] = episode
        while len(self._known) > self._capacity:
            _, forgotten = self._known.popitem(last=False)
            if forgotten.simulator is not None:
                self._free.append(forgotten.simulator)
        return number


def _is_same(one: _Episode[Any], other: _Episode[Any]) -> bool:
    return (
        one.seed == other.seed
        and len(one.actions) == len(other.actions)
        and all(map(torch.equal, one.actions, other.actions))
    )
