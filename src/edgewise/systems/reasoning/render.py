"""Replay of one proof: goals from left to right, each a column of its atoms."""

from __future__ import annotations

from typing import Any

from tensordict import TensorDict

from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

APART = 2.6
"""Distance between columns, in heights of an atom."""


def replay(states: TensorDict, env: Any = None) -> dict[str, Any]:
    """Build the replay of one proof. docs/replay-format.md describes the format.

    Args:
        states: `state` of one world over time, `[T + 1]`, with `atoms` `[T + 1, A, 3]`.
        env: the environment, whose vocabulary gives names; without it, atoms are shown as ids.
    """
    vocabulary: Vocabulary | None = None if env is None else env.dataset.vocabulary
    goals = [[atom for atom in goal if atom[0]] for goal in states["atoms"].tolist()]
    columns = [_column(goal, number, vocabulary) for number, goal in enumerate(goals)]
    first = [sum(map(len, goals[:number])) for number in range(len(goals))]
    return {
        "format": "edgewise-replay/1",
        "title": "reasoning",
        "fps": 1,
        "smooth": False,
        "layers": [
            {"name": "atoms", "kind": "nodes", "label_place": "above", "size": 6, **_shown(columns[:1])},
            {
                "name": "steps",
                "kind": "edges",
                "between": "atoms",
                "directed": True,
                "color": "faint",
                "source": [],
                "target": [],
            },
        ],
        "frames": [
            {
                "atoms": _shown(columns[: number + 1]),
                "steps": {"source": first[:number], "target": first[1 : number + 1]},
            }
            for number in range(len(goals))
        ],
        "series": [{"name": "atoms to prove", "values": [len(goal) for goal in goals]}],
        "facts": {"query": _text(goals[0][0], vocabulary), "steps": len(goals) - 1},
    }


def _column(goal: list[list[int]], number: int, vocabulary: Vocabulary | None) -> dict[str, list[Any]]:
    return {
        "x": [APART * number] * len(goal),
        "y": [-float(row) for row in range(len(goal))],
        "label": [_text(atom, vocabulary) for atom in goal],
        "color": ["accent" if row == 0 else "muted" for row in range(len(goal))],
    }


def _shown(columns: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    return {name: [value for column in columns for value in column[name]] for name in columns[0]}


def _text(atom: list[int], vocabulary: Vocabulary | None) -> str:
    if vocabulary is not None:
        return vocabulary.text(atom)
    return f"{atom[0]}({atom[1]},{atom[2]})"
