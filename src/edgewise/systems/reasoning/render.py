"""Replay of one proof as a tree: each atom is above the atoms that a rule puts in its place."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from tensordict import TensorDict

from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

INDENT, LETTER = 0.9, 0.33
"""Distance between levels and width of a letter, in heights of a row."""
PROVED, FAILED = ("True", "Endt"), ("False", "Endf")
"""Atoms that say how a proof ended."""


class Row(NamedTuple):
    """An atom of the tree.

    Attributes:
        parent: the number of the row in whose place it was put; its own number for the query.
        level: how deep it is.
        step: when it appeared.
    """

    parent: int
    level: int
    step: int


def replay(states: TensorDict, env: Any = None) -> dict[str, Any]:
    """Build the replay of one proof. docs/replay-format.md describes the format.

    Args:
        states: `state` of one world over time, `[T + 1]`, with `atoms` `[T + 1, A, 3]`.
        env: the environment, whose vocabulary gives names; without it, atoms are shown as ids.
    """
    vocabulary: Vocabulary | None = None if env is None else env.dataset.vocabulary
    goals = [[_text(atom, vocabulary) for atom in goal if atom[0]] for goal in states["atoms"].tolist()]
    rows, open_rows = tree(goals)
    place = {number: index for index, number in enumerate(_from_the_top(rows))}
    shown: list[dict[str, list[Any]]] = []
    labels: dict[int, str] = {}
    for step, (goal, waiting) in enumerate(zip(goals, open_rows, strict=True)):
        if goal[0] not in PROVED + FAILED:
            labels |= dict(zip(waiting, goal, strict=True))
        tones = {number: "accent" if number == waiting[0] else "muted" for number in waiting}
        if goal[0] in PROVED + FAILED:
            tones = dict.fromkeys(waiting, "good" if goal[0] in PROVED else "bad")
        present = [number for number, row in enumerate(rows) if row.step <= step and number in labels]
        shown.append(
            {
                "x": [INDENT * rows[number].level for number in present],
                "y": [-float(place[number]) for number in present],
                "label": [labels[number] for number in present],
                "color": [tones.get(number, "good") for number in present],
            }
        )
    widest = max(INDENT * rows[number].level + LETTER * len(text) for number, text in labels.items())
    links = [[(rows[n].parent, n) for n in range(1, len(frame["x"]))] for frame in shown]
    return {
        "format": "edgewise-replay/1",
        "title": "reasoning",
        "fps": 1,
        "smooth": False,
        "bounds": [-0.6, 0.8 - len(rows), widest + 0.8, 0.8],
        "layers": [
            {
                "name": "steps",
                "kind": "edges",
                "between": "atoms",
                "color": "faint",
                "source": [],
                "target": [],
            },
            {"name": "atoms", "kind": "nodes", "label_place": "right", "size": 6, **shown[0]},
        ],
        "frames": [
            {
                "atoms": atoms,
                "steps": {"source": [up for up, _ in each], "target": [down for _, down in each]},
            }
            for atoms, each in zip(shown, links, strict=True)
        ],
        "series": [{"name": "atoms to prove", "values": [len(goal) for goal in goals]}],
        "facts": {"query": goals[0][0], "steps": len(goals) - 1},
        "legend": [
            {"label": "resolved", "color": "good"},
            {"label": "next", "color": "accent"},
            {"label": "waiting", "color": "muted"},
            {"label": "given up", "color": "bad"},
        ],
    }


def tree(goals: list[list[str]]) -> tuple[list[Row], list[list[int]]]:
    """Return the rows of a proof, and for each goal the rows that are still to prove.

    A step puts any number of atoms in the place of the first; the others stay.
    """
    rows, waiting = [Row(0, 0, 0) for _ in goals[0]], list(range(len(goals[0])))
    open_rows = [waiting]
    for step, (goal, following) in enumerate(pairwise(goals), 1):
        new = max(0, len(following) - len(goal) + 1)
        if following[0] in PROVED + FAILED:
            open_rows.append(waiting)
            continue
        first, *rest = waiting
        added = [Row(first, rows[first].level + 1, step) for _ in range(new)]
        waiting = [*range(len(rows), len(rows) + new), *rest][: len(following)]
        rows += added
        open_rows.append(waiting)
    return rows, open_rows


def _from_the_top(rows: list[Row]) -> list[int]:
    """Return the numbers of the rows in the order in which they are drawn: a row, then what is below it."""
    order: list[int] = []

    def visit(number: int) -> None:
        order.append(number)
        for below, row in enumerate(rows):
            if below != number and row.parent == number and row.level > rows[number].level:
                visit(below)

    for number, row in enumerate(rows):
        if row.level == 0:
            visit(number)
    return order


def _text(atom: list[int], vocabulary: Vocabulary | None) -> str:
    if vocabulary is not None:
        return vocabulary.text(atom)
    return f"{atom[0]}({atom[1]},{atom[2]})"
