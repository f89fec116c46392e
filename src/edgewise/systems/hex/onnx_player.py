"""Networks in ONNX files as opponents: `--opponents FILE.onnx`, with their planes described in FILE.json.

The description is an object with these fields; only `size` and `planes` are needed:

| field | meaning |
|---|---|
| `size` | side of the board |
| `planes` | the input planes in order, each one of `PLANES` |
| `view` | `mover` (default): boards are mirrored so that the mover connects top and bottom; `fixed`: never |
| `border` | rows and columns added on each side (0), filled with the stones of the side's owner |
| `rotate` | whether to average with the board turned by 180 degrees (false) |
| `input`, `output` | names in the file; by default its first input and output |

The output has one number per cell, with or without the border; the legal cell with the largest is played.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError, DataError
from edgewise.envs.policy import Policy
from edgewise.systems.hex.dynamics import EMPTY, FIRST, SECOND
from edgewise.systems.hex.env import HexEnv

PLANES = ("mine", "theirs", "free", "first", "second", "second_to_move", "ones")
LARGEST_DESCRIPTION = 65_536
USAGE = "FILE.onnx"


@dataclass(frozen=True)
class Description:
    """The fields of FILE.json."""

    size: int
    planes: tuple[str, ...]
    view: str = "mover"
    border: int = 0
    rotate: bool = False
    input: str | None = None
    output: str | None = None


class Session(Protocol):
    """The part of an ONNX Runtime session that is used."""

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        """Return the outputs."""


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
    session, source, target = _open(path, described)

    def policy(tensordict: TensorDictBase) -> TensorDictBase:
        state, mask = tensordict["state"], tensordict["action_mask"]
        sizes = state["size"].unique().tolist()
        if sizes != [described.size]:
            raise ConfigError(f"{rest} plays on boards of side {described.size}, got {sizes}")
        scores = cell_scores(
            state["stones"], state["player"], described, lambda x: session.run([target], {source: x})[0], path
        )
        padded = torch.full(mask.shape, -torch.inf, device=mask.device)
        padded[:, : scores.shape[1]] = scores.to(mask.device)
        return tensordict.set("action", padded.masked_fill(~mask, -torch.inf).argmax(-1))

    return policy


def read_description(path: Path) -> Description:
    """Parse the description of a network.

    Raises:
        DataError: the file is missing or malformed; the message names the field.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_DESCRIPTION + 1)
        found = json.loads(text) if len(text) <= LARGEST_DESCRIPTION else None
    except OSError as error:
        raise DataError(
            f"{path}: {error.strerror}", hint="describe the planes of the network there"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object of at most {LARGEST_DESCRIPTION} bytes")
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
    if found.get("view", "mover") not in ("mover", "fixed"):
        problems.append(f"view: got {found['view']!r}, expected mover or fixed")
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
    x = planes(_with_border(board, border), mover, described.planes)
    found = torch.from_numpy(np.ascontiguousarray(run(x.numpy()), dtype=np.float32)).flatten(1)
    wide = size + 2 * border
    if found.shape == (len(board), wide * wide):
        return found.view(-1, wide, wide)[:, border : border + size, border : border + size]
    if found.shape == (len(board), size * size):
        return found.view(-1, size, size)
    raise DataError(f"{path}: the output has {tuple(found.shape)} numbers, expected {size * size} per board")


def _with_border(board: Tensor, border: int) -> Tensor:
    """Add the first player's stones above and below and the second player's at the sides."""
    if not border:
        return board
    wide = torch.nn.functional.pad(board, (border, border, 0, 0), value=SECOND)
    return torch.nn.functional.pad(wide, (0, 0, border, border), value=FIRST)


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


def _open(path: Path, described: Description) -> tuple[Session, str, str]:
    """Open a network; returns the session and the names of its input and output."""
    try:
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ConfigError(f"{path} needs ONNX Runtime", hint="pip install onnxruntime") from None
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise DataError(f"{path} cannot be opened: {str(error).splitlines()[0][:200]}") from None
    inputs, outputs = (
        [each.name for each in found] for found in (session.get_inputs(), session.get_outputs())
    )
    for kind, name, known in (("input", described.input, inputs), ("output", described.output, outputs)):
        if name is not None and name not in known:
            raise DataError(f"{path.with_suffix('.json')}: {kind}: {name!r} is not one of {', '.join(known)}")
    return session, described.input or inputs[0], described.output or outputs[0]
