"""How a policy is decoded at evaluation: greedily, by samples, from several first actions, or by a beam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from edgewise.config.errors import ConfigError

Kind = Literal["greedy", "sample", "multistart", "beam"]

FORMS = "greedy, sample:N, multistart, multistart:N or beam:K, such as sample:64"


@dataclass(frozen=True)
class Decoding:
    """How episodes are chosen for every instance; of several, the one with the highest return is kept.

    Args:
        kind: `greedy` plays the mode of the policy; `sample` plays `width` sampled episodes; `multistart`
            plays greedily after each of the `width` most probable first actions; `beam` keeps the `width`
            most probable beginnings of episodes.
        width: number of episodes of each instance; None for every legal first action of `multistart`.

    Example:
        >>> Decoding.parse("sample:64")
        Decoding(kind='sample', width=64)
    """

    kind: Kind
    width: int | None = None

    @classmethod
    def parse(cls, text: str, *, field: str = "decode") -> Decoding:
        """Read a decoding as it is typed; `field` names it in errors.

        Raises:
            ConfigError: it is none of the known forms.
        """
        kind, colon, number = text.partition(":")
        is_number = number.isascii() and number.isdigit() and 0 < len(number) <= 9 and int(number) > 0
        has_width = kind in ("sample", "beam") or (kind == "multistart" and bool(colon))
        if kind not in get_args(Kind) or has_width != bool(colon) or (has_width and not is_number):
            raise ConfigError(f'{field}: got "{text}", expected {FORMS}')
        return cls(kind, int(number) if has_width else None)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.kind if self.width is None else f"{self.kind}:{self.width}"
