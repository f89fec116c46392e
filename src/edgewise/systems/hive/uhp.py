"""Engines that speak the Universal Hive Protocol (UHP) over stdin and stdout, as opponents in the arena.

`--opponents "uhp:COMMAND"` starts the command once. For each of its moves it is given the whole game as a
game string (`newgame`) and asked for `bestmove depth 2`.
"""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import time
import weakref

import torch
from tensordict import TensorDictBase

from edgewise.config.errors import DataError
from edgewise.envs.policy import Policy
from edgewise.experiments.opponents import Opponent
from edgewise.systems.hive import dynamics
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.game_file import IN_PROGRESS, MOST_MOVES, NOT_STARTED, write_game
from edgewise.systems.hive.notation import Hive, Move, read_move, write_move
from edgewise.systems.hive.pieces import Hand

TIMEOUT = 120.0
"""Seconds that an engine may take for an answer."""
LONGEST = 1 << 20
"""Bytes of an answer."""
SEARCH = "bestmove depth 2"


class Engine:
    """A running engine.

    Args:
        command: as in a shell, without its operators.
        timeout: seconds to wait for an answer.

    Raises:
        DataError: it cannot be started, or does not greet with `ok`.
    """

    def __init__(self, command: str, *, timeout: float = TIMEOUT) -> None:
        self.command, self.timeout = command, timeout
        try:
            self._process = subprocess.Popen(
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except (OSError, ValueError, IndexError) as error:
            raise DataError(f"the engine {command!r} cannot be started: {error}") from None
        self._stop = weakref.finalize(self, self._process.kill)
        self._rest = b""
        self._read()

    def ask(self, line: str) -> list[str]:
        """Send a command and return the lines of its answer before `ok`.

        Raises:
            DataError: the engine refuses, breaks off, or does not answer in time.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise DataError(f"the engine {self.command!r} has ended before {line[:60]!r}") from None
        found = self._read()
        if found and found[0].partition(" ")[0] in ("err", "invalidmove"):
            raise DataError(f"the engine {self.command!r} answers {found[0][:200]!r} to {line[:60]!r}")
        return found

    def close(self) -> None:
        """End the engine."""
        self._stop()
        self._process.wait()

    def _read(self) -> list[str]:
        """Return the lines up to `ok`."""
        assert self._process.stdout is not None
        found: list[str] = []
        end = time.monotonic() + self.timeout
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                text = line.decode(errors="replace").strip()
                if text == "ok":
                    return found
                if text:
                    found.append(text)
                continue
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise DataError(f"the engine {self.command!r} did not answer within {self.timeout:.0f} s")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise DataError(f"the engine {self.command!r} has ended without `ok`")
            self._rest += part
            if len(self._rest) > LONGEST:
                raise DataError(f"the engine {self.command!r} answers with more than {LONGEST} bytes")


def uhp_player(env: HiveEnv, command: str) -> Policy:
    """Return a policy that asks an engine, one game after the other."""
    engine = Engine(command, timeout=TIMEOUT)

    def policy(tensordict: TensorDictBase) -> TensorDictBase:
        state = tensordict["state"]
        actions = []
        for game in range(len(state)):
            one = state[game : game + 1]
            moves = played_moves(one, env.hand)
            engine.ask(f"newgame {write_game(env.hand, moves, IN_PROGRESS if moves else NOT_STARTED)}")
            answer = engine.ask(SEARCH)
            if len(answer) != 1:
                raise DataError(f"the engine {command!r} answers {len(answer)} lines to {SEARCH!r}")
            move = read_move(answer[0], Hive.of(one, env.hand))
            actions.append(one["moves"][0].tolist().index(list(move)))
        return tensordict.set("action", torch.tensor(actions, device=state["player"].device))

    return policy


def played_moves(state: TensorDictBase, hand: Hand) -> list[str]:
    """Return the moves of one game `[1]` in UHP, replayed from those that its state holds."""
    position = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=32)
    names = []
    for slot, q, r in state["played"][0, : int(state["plies"])].tolist():
        move: Move = (slot, q, r)
        names.append(write_move(move, Hive.of(position, hand)))
        position = dynamics.advance(position, torch.tensor([move], dtype=torch.int16), hand)
    return names


OPPONENT = Opponent(uhp_player, "uhp:COMMAND", {"keep_moves": True})
