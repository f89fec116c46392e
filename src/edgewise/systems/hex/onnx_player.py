"""Networks in ONNX files as opponents: `--opponents FILE.onnx`, with their planes described in FILE.json.

The description is an object with these fields; only `size` and `planes` are needed:

| field | meaning |
|---|---|
| `size` | side of the board |
| `planes` | the input planes in order, each one of `PLANES` |
| `view` | `mover` (default): boards are mirrored so that the mover connects top and bottom; `fixed`: never |
| `border` | rows and columns added on each side (0), filled with the stones of the side's owner |
| `corners` | where rows and columns of the border meet: `first` (default), `second`, `empty` or `both` |
| `batch` | boards that the network takes at a time; by default what the file says, or all at once |
| `rotate` | whether to average with the board turned by 180 degrees (false) |
| `input`, `output` | names in the file; by default its first input and output |

The output has one number per cell, with or without the border; the legal cell with the largest is played.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config import sources
from edgewise.config.errors import ConfigError, DataError
from edgewise.envs.policy import Policy
from edgewise.systems.hex.dynamics import EMPTY, FIRST, SECOND
from edgewise.systems.hex.env import HexEnv

HELD = ("mine", "theirs", "free", "first", "second")
PLANES = (*HELD, "second_to_move", "ones")
"""Planes that depend on the stones, and all planes."""
VIEWS, CORNERS = ("mover", "fixed"), ("first", "second", "empty", "both")
LARGEST_DESCRIPTION, LARGEST_BATCH = 65_536, 65_536
USAGE = "FILE.onnx"


@dataclass(frozen=True)
class Description:
    """The fields of FILE.json."""

    size: int
    planes: tuple[str, ...]
    view: str = "mover"
    border: int = 0
    corners: str = "first"
    rotate: bool = False
    batch: int | None = None
    input: str | None = None
    output: str | None = None


class Session(Protocol):
    """The part of an ONNX Runtime session that is used."""

    def get_inputs(self) -> list[Any]:
        """Return the inputs, each with its name and shape."""

    def get_outputs(self) -> list[Any]:
        """Return the outputs."""

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        """Return the outputs."""


@dataclass(frozen=True)
class Network:
    """A network in a file, which runs on any number of boards.

    Args:
        path: of the file, for messages.
        session: runs it.
        input: name of the input.
        output: name of the output.
        batch: boards that it takes at a time; None for any number.
    """

    path: Path
    session: Session
    input: str
    output: str
    batch: int | None

    def __call__(self, x: Any) -> Any:
        """Map planes `[B, P, S, S]` to the output; a batch that is not full is filled with copies."""
        if self.batch is None:
            return self._run(x)
        parts = []
        for begin in range(0, len(x), self.batch):
            part = x[begin : begin + self.batch]
            missing = self.batch - len(part)
            full = np.concatenate((part, np.repeat(part[-1:], missing, 0))) if missing else part
            parts.append(self._rows(self._run(full))[: len(part)])
        return np.concatenate(parts)

    def _run(self, x: Any) -> Any:
        try:
            return self.session.run([self.output], {self.input: x})[0]
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(
                f"{self.path}: the network does not take planes of shape {list(x.shape)}: {reason}",
                hint=f"correct planes, border or batch in {self.path.with_suffix('.json')}",
            ) from None

    def _rows(self, found: Any) -> Any:
        """Return the output with one row per board; some networks of one board leave that dimension out."""
        found = np.asarray(found)
        return found[None] if self.batch == 1 and (not found.ndim or len(found) != 1) else found


def onnx_player(env: HexEnv, rest: str) -> Policy:
    """Return a policy that plays the network's best legal cell, all games as one batch.

    Raises:
        ConfigError: ONNX Runtime is not installed, or the board has another size or the swap rule.
        DataError: the file or its description cannot be used.
    """
    path = Path(rest)
    described = read_description(path.with_suffix(".json"))
    if env.config.swap:
        raise ConfigError(f"{rest} has no swap", hint="play it with swap=false")
    network = _open(path, described)

    def policy(tensordict: TensorDictBase) -> TensorDictBase:
        state, mask = tensordict["state"], tensordict["action_mask"]
        sizes = state["size"].unique().tolist()
        if sizes != [described.size]:
            raise ConfigError(f"{rest} plays on boards of side {described.size}, got {sizes}")
        scores = cell_scores(state["stones"], state["player"], described, network, path)
        padded = torch.full(mask.shape, -torch.inf, device=mask.device)
        padded[:, : scores.shape[1]] = scores.to(mask.device)
        return tensordict.set("action", padded.masked_fill(~mask, -torch.inf).argmax(-1))

    return policy


def read_description(path: Path) -> Description:
    """Parse the description of a network.

    Raises:
        DataError: the file is missing or malformed; the message names the field.
    """
    hint = "describe the planes of the network there"
    found = sources.read_json(path, largest=LARGEST_DESCRIPTION, hint=hint)
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object")
    problems = [
        f"unknown field {name!r}" for name in sorted(found.keys() - Description.__annotations__.keys())
    ]
    planes = found.get("planes")
    if not isinstance(planes, list) or not planes or not all(plane in PLANES for plane in planes):
        problems.append(f"planes: got {planes!r}, expected a list of {', '.join(PLANES)}")
    for name, most in (("size", 19), ("border", 8)):
        value = found.get(name, 0)
        if type(value) is not int or not (2 if name == "size" else 0) <= value <= most:
            problems.append(f"{name}: got {value!r}, expected a whole number up to {most}")
    for name, known in (("view", VIEWS), ("corners", CORNERS)):
        if found.get(name, known[0]) not in known:
            problems.append(f"{name}: got {found[name]!r}, expected {' or '.join(known)}")
    batch = found.get("batch", 1)
    if type(batch) is not int or not 1 <= batch <= LARGEST_BATCH:
        problems.append(f"batch: got {batch!r}, expected a whole number from 1 to {LARGEST_BATCH}")
    if type(found.get("rotate", False)) is not bool:
        problems.append(f"rotate: got {found['rotate']!r}, expected true or false")
    problems += [
        f"{name}: got {found[name]!r}, expected a name"
        for name in ("input", "output")
        if not isinstance(found.get(name, ""), str)
    ]
    if problems:
        raise DataError("\n".join(f"{path}: {problem}" for problem in problems))
    return Description(**{**found, "planes": tuple(found["planes"])})


def cell_scores(stones: Tensor, player: Tensor, described: Description, run: Any, path: Path) -> Tensor:
    """Compute the network's number of every cell, `[B, size²]` float32.

    Args:
        stones: `[B, N]` int8, the cells first.
        player: `[B]` int64, who is to move.
        described: the planes.
        run: maps planes `[B, P, S, S]`, numpy float32, to the output.
        path: of the network, for messages.
    """
    size = described.size
    board = stones[:, : size * size].view(-1, size, size).cpu()
    player = player.cpu()
    mirrored = (player == 1).view(-1, 1, 1) & (described.view == "mover")
    swapped = torch.where(board == EMPTY, EMPTY, FIRST + SECOND - board).mT
    board = torch.where(mirrored, swapped, board)
    mover = torch.where(mirrored.view(-1), 0, player)
    scores = _scores(board, mover, described, run, path)
    if described.rotate:
        turned = _scores(board.flip(1, 2), mover, described, run, path)
        scores = (scores + turned.flip(1, 2)) / 2
    return torch.where(mirrored, scores.mT, scores).flatten(1)


def _scores(board: Tensor, mover: Tensor, described: Description, run: Any, path: Path) -> Tensor:
    """Return the output for boards `[B, S, S]`, without the border."""
    size, border = described.size, described.border
    wide = size + 2 * border
    x = planes(_with_border(board, border, described.corners), mover, described.planes)
    if described.corners == "both":
        held = [float(name != "free") for name in described.planes]
        at = _corners(wide, border) & torch.tensor([name in HELD for name in described.planes]).view(-1, 1, 1)
        x = torch.where(at, torch.tensor(held).view(-1, 1, 1), x)
    raw = np.ascontiguousarray(run(x.numpy()), dtype=np.float32)
    found = torch.from_numpy(raw.reshape(len(raw), -1) if raw.ndim else raw.reshape(1, 1))
    if found.shape == (len(board), wide * wide):
        return found.view(-1, wide, wide)[:, border : border + size, border : border + size]
    if found.shape == (len(board), size * size):
        return found.view(-1, size, size)
    raise DataError(f"{path}: the output has {tuple(found.shape)} numbers, expected {size * size} per board")


def _with_border(board: Tensor, border: int, corners: str) -> Tensor:
    """Add the first player's stones above and below, the second player's at the sides, and the corners."""
    if not border:
        return board
    wide = torch.nn.functional.pad(board, (border, border, 0, 0), value=SECOND)
    whole = torch.nn.functional.pad(wide, (0, 0, border, border), value=FIRST)
    stone = {"first": FIRST, "second": SECOND}.get(corners, EMPTY)
    return whole.masked_fill(_corners(whole.shape[-1], border), stone)


def _corners(wide: int, border: int) -> Tensor:
    """Return where rows and columns of the border meet, `[S, S]` bool."""
    line = torch.arange(wide)
    outside = (line < border) | (line >= wide - border)
    return outside.unsqueeze(-1) & outside


def planes(board: Tensor, mover: Tensor, names: tuple[str, ...]) -> Tensor:
    """Return the planes of boards `[B, S, S]` int8, `[B, P, S, S]` float32."""
    own = (mover + 1).view(-1, 1, 1)
    known = {
        "mine": board == own,
        "theirs": (board != own) & (board != EMPTY),
        "free": board == EMPTY,
        "first": board == FIRST,
        "second": board == SECOND,
        "second_to_move": (own == SECOND).expand_as(board),
        "ones": torch.ones_like(board, dtype=torch.bool),
    }
    return torch.stack([known[name] for name in names], 1).float()


def _open(path: Path, described: Description) -> Network:
    """Open a network."""
    try:
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ConfigError(f"{path} needs ONNX Runtime", hint="pip install onnxruntime") from None
    try:
        session = onnxruntime.InferenceSession(str(sources.check(path)), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise DataError(f"{path} cannot be opened: {str(error).splitlines()[0][:200]}") from None
    inputs, outputs = session.get_inputs(), session.get_outputs()
    for kind, name, found in (("input", described.input, inputs), ("output", described.output, outputs)):
        known = [each.name for each in found]
        if name is not None and name not in known:
            raise DataError(f"{path.with_suffix('.json')}: {kind}: {name!r} is not one of {', '.join(known)}")
    source = next((each for each in inputs if each.name == described.input), inputs[0])
    batch = described.batch or _fixed_batch(source)
    return Network(path, session, source.name, described.output or outputs[0].name, batch)


def _fixed_batch(source: Any) -> int | None:
    """Return the number of boards that an input takes; None if the file leaves it open."""
    shape = getattr(source, "shape", None) or [None]
    return shape[0] if isinstance(shape[0], int) else None
