"""Policies that come with edgewise: packed runs inside the package, named `zoo:NAME`. Never imports torch.

A packed run is a run folder that holds the weights of one checkpoint and a card, and nothing that only
training needs. Every verb that takes a run folder takes a packed one, by its path or by its name in the zoo.
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from edgewise.config import files
from edgewise.config.errors import ConfigError, DataError
from edgewise.config.model import Config
from edgewise.config.wording import did_you_mean

PREFIX = "zoo:"
FOLDER = Path(__file__).resolve().parents[1] / "zoo"
"""Where the packed runs of the package are."""
CARD = "card.json"
"""File that only a packed run has."""


class Figure(Config):
    """The mean of one measure of one policy over fixed instances, with its 95 % interval."""

    policy: str
    """Name of the run or of a baseline."""
    baseline: bool = False
    """Whether it is a hand-written policy."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the environment that differ from those of the run."""
    episodes: int
    """Number of instances."""
    measure: str
    """What is measured, such as `return`."""
    mean: float
    """Mean over the instances."""
    low: float | None
    """Lower end of the interval over instances; none if they cannot tell it."""
    high: float | None
    """Upper end of the interval over instances; none if they cannot tell it."""
    n: int | None = None
    """Number of samples of the interval; that of the episodes if none."""

    def text(self) -> str:
        """Format the mean with its interval and the number of samples."""
        span = "" if self.low is None or self.high is None else f"[{self.low:.4g}, {self.high:.4g}] "
        return f"{self.mean:.4g} {span}(n={self.n or self.episodes})"


class AblationFigure(Config):
    """What one measure of the policy loses or gains without something, on the same instances."""

    without: str
    """What the policy acts without, such as `edges`."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """As in `Figure`."""
    episodes: int
    """Number of instances."""
    measure: str
    """What is measured."""
    difference: float
    """Policy as it is minus ablated policy, in the mean."""
    low: float | None
    """Lower end of its paired 95 % interval; none if the instances cannot tell it."""
    high: float | None
    """Upper end of its paired 95 % interval; none if the instances cannot tell it."""
    changed_actions: float
    """Share of the policy's actions that the ablated one would have chosen differently."""


class Check(Config):
    """A short evaluation that shows whether the weights are still those of the card."""

    episodes: int
    """Number of instances."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the environment that make it short."""
    measures: dict[str, float]
    """Mean of each measure over them."""


class Card(Config):
    """Where a packed policy comes from and how good it is."""

    name: str
    """Name of the packed run."""
    summary: str
    """What the policy does, in one line."""
    environment: str
    """Name of the environment."""
    algorithm: str
    """Name of the algorithm."""
    command: str
    """Command that trains it again."""
    seed: int
    """Random seed of the run."""
    frames: int
    """Frames that it was trained for when the checkpoint was saved."""
    commit: str | None = None
    """Commit of edgewise that trained it; none if it is not known."""
    measure: str
    """The measure that decided the best checkpoint."""
    evaluated: str
    """Command that prints the figures."""
    figures: tuple[Figure, ...]
    """Of the policy, of baselines, and of runs with other seeds, on the same instances."""
    ablations: tuple[AblationFigure, ...] = ()
    """What the policy uses."""
    check: Check
    """A short evaluation, which the tests repeat."""


def zoo_names() -> list[str]:
    """Return the names of the policies that come with edgewise."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CARD}"))


def run_path(reference: str | PathLike[str]) -> Path:
    """Return the folder that a reference to a run means: a path, or `zoo:NAME`.

    Raises:
        ConfigError: the zoo has no policy of that name.
    """
    text = fspath(reference)
    if not text.startswith(PREFIX):
        return Path(text)
    name, names = text.removeprefix(PREFIX), zoo_names()
    if name not in names:
        near = did_you_mean(name, names)
        listed = f"`edgewise zoo` lists them: {', '.join(names)}"
        raise ConfigError(
            f"{text}: no policy of this name comes with edgewise",
            hint=near if near.startswith("did") else listed,
        )
    return FOLDER / name


def is_in_zoo(path: Path) -> bool:
    """Return whether a folder is one of the package's own, in which nothing may be written."""
    return path.resolve().is_relative_to(FOLDER)


def beside(run: Path, name: str) -> Path:
    """Return the path of a file beside a run folder; in the current folder for a policy of the package."""
    return Path(name) if is_in_zoo(run) else run.with_name(name)


def is_packed(folder: Path) -> bool:
    """Return whether a run folder is packed, so that training cannot go on from it."""
    return (folder / CARD).is_file()


def read_card(folder: Path) -> Card:
    """Read the card of a packed run.

    Raises:
        DataError: it is missing or malformed.
    """
    path = folder / CARD
    try:
        found: Any = files.read_json(path)
        return Card.from_plain(found)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{path} is not a card: {error}") from error
