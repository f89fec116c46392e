"""Settings of rule mining. Never imports torch."""

from __future__ import annotations

from pydantic import Field

from edgewise.config.bounds import REAL, ROWS
from edgewise.config.model import Config


class MiningConfig(Config):
    """Which rules are looked for, and which are kept."""

    length: int = Field(3, ge=1, le=3)
    """Maximum number of atoms in the body of a chain h(X,Y) <- b1(X,A), b2(A,B), b3(B,Y)."""
    constants: bool = True
    """Whether to mine rules for one variable: h(X,c) <- b(X,d), h(X,c) <- b(X,A), and the same for h(X,X)."""
    min_support: int = Field(2, ge=1, le=ROWS)
    """Minimum number of training atoms that a rule concludes."""
    min_confidence: float = Field(0.01, ge=0, lt=1)
    """Minimum confidence."""
    pessimism: float = Field(5.0, ge=0, le=REAL)
    """Confidence is support / (conclusions + pessimism), so rules with few conclusions rank lower."""
    max_chains: int = Field(1000, ge=1, le=ROWS)
    """Chains that are kept per predicate, the most confident ones."""
    max_constants: int = Field(20, ge=1, le=ROWS)
    """Rules with constants that are kept per head h(X,c), the most confident ones."""
    pairs: int = Field(50_000, ge=1, le=ROWS)
    """Training atoms whose arguments are searched for chains that connect them."""
    branches: int = Field(8, ge=1, le=ROWS)
    """Edges of each of them that are tried as the first of three atoms."""
    max_paths: int = Field(1_000_000, ge=1, le=ROWS)
    """Paths per body from which its confidence is counted; beyond that, a random sample of them."""
    minutes: float = Field(10.0, gt=0, le=REAL)
    """Time limit. Rules found until then are kept."""
    jobs: int = Field(1, ge=1, le=ROWS)
    """Processes that count in parallel; the rules do not depend on it."""
    seed: int = Field(0, ge=0, le=ROWS)
    """Random seed."""
