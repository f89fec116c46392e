"""How a policy is decoded at evaluation: greedily, by samples, from several first actions, or by a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from edgewise.config.errors import ConfigError

Kind = Literal["greedy", "sample", "multistart", "beam", "guided", "active", "search"]

SYMMETRIES = "+symmetries"

FORMS = (
    "greedy, sample:N, multistart, multistart:N, beam:K, guided:K, active:N or search:N, such as sample:64, "
    "with +symmetries after it to play every symmetry of each instance"
)


@dataclass(frozen=True)
class Decoding:
    """How episodes are chosen for every instance; of several, the one with the highest return is kept.

    Args:
        kind: `greedy` plays the mode of the policy; `sample` plays `width` sampled episodes; `multistart`
            plays greedily after each of the `width` most probable first actions; `beam` keeps the `width`
            most probable beginnings of episodes; `guided` keeps the `width` beginnings that lead to the best
            episodes if the policy goes on greedily (https://arxiv.org/abs/2207.06190); `active` samples
            episodes in `width` rounds, and learns on each instance between them
            (https://arxiv.org/abs/2106.05126); `search` chooses every action by a tree search of `width`
            simulations with the policy and its critic.
        width: number of episodes of each instance, of rounds, or of simulations; None for every legal first
            action of `multistart`.
        symmetries: whether each instance is also played under every symmetry that its environment knows.

    Example:
        >>> Decoding.parse("sample:64")
        Decoding(kind='sample', width=64)
    """

    kind: Kind
    width: int | None = None
    symmetries: bool = False

    @classmethod
    def parse(cls, text: str, *, field: str = "decode") -> Decoding:
        """Read a decoding as it is typed; `field` names it in errors.

        Raises:
            ConfigError: it is none of the known forms.
        """
        plain = text.removesuffix(SYMMETRIES)
        kind, colon, number = plain.partition(":")
        is_number = number.isascii() and number.isdigit() and 0 < len(number) <= 9 and int(number) > 0
        has_width = kind in ("sample", "beam", "guided", "active", "search") or (
            kind == "multistart" and bool(colon)
        )
        if kind not in get_args(Kind) or has_width != bool(colon) or (has_width and not is_number):
            raise ConfigError(f'{field}: got "{text}", expected {FORMS}')
        width = int(number) if has_width else None
        return cls(kind, width, symmetries=plain != text)  # type: ignore[arg-type]

    def __str__(self) -> str:
        plain = self.kind if self.width is None else f"{self.kind}:{self.width}"
        return plain + (SYMMETRIES if self.symmetries else "")
