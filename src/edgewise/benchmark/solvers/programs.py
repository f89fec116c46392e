"""Integer programs by HiGHS, which comes with scipy."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

NAME = "HiGHS"
NODES = 2_000
"""Nodes of the search tree after which the best solution so far counts."""

Values = NDArray[np.float64]
Row = tuple[Sequence[tuple[int, float]], float, float]
"""A constraint: terms (variable, factor), and the least and the greatest value of their sum."""


@dataclass
class Program:
    """A linear program over variables in [0, upper], some of them whole.

    Args:
        cost: of every variable; the sum is minimised.
        upper: bound of every variable.
        whole: which variables are whole numbers.
        rows: constraints.
    """

    cost: Values
    upper: Values
    whole: NDArray[np.bool_]
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def binary(cls, cost: Values) -> Program:
        """Return a program over variables that are 0 or 1."""
        return cls(cost, np.ones(len(cost)), np.ones(len(cost), dtype=np.bool_))

    def add(self, terms: Sequence[tuple[int, float]], low: float = -np.inf, high: float = np.inf) -> None:
        """Add a constraint."""
        self.rows.append((terms, low, high))

    def solve(self) -> tuple[Values, bool] | None:
        """Return the best solution and whether it is proven to be optimal; None if none was found."""
        place = [(number, *term) for number, (terms, _, _) in enumerate(self.rows) for term in terms]
        row, column, factor = (np.array(each) for each in zip(*place, strict=True))
        shape = (len(self.rows), len(self.cost))
        _, low, high = zip(*self.rows, strict=True)
        with _silent_stdout():
            found = milp(
                self.cost,
                constraints=LinearConstraint(csr_array((factor, (row, column)), shape=shape), low, high),
                integrality=self.whole.astype(int),
                bounds=Bounds(0, self.upper),
                options={"node_limit": NODES, "mip_rel_gap": 0.0},
            )
        if found.x is None:
            return None
        return np.where(self.whole, np.round(found.x), found.x), found.status == 0


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Drop what C code writes to stdout, which is for results: HiGHS has lines that no option turns off."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 1)
        yield
    finally:
        flush(None)
        os.dup2(kept, 1)
        os.close(kept)
