"""Takes the pictures of `edgewise play` that the docs show.

    python docs/images/play_picture.py docs/images/play.png RUN b2 c3
    python docs/images/play_picture.py docs/images/play_hive.png hive:greedy 10

After the picture: a player, and the person's moves, or the number of plies that it plays against itself.
Needs Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import torch

from edgewise.experiments.browser.players import make_table
from edgewise.experiments.browser.server import GameServer
from edgewise.experiments.browser.session import Session

SIZE = "1100,760"


def take(target: Path, player: str, moves: list[str]) -> None:
    """Play the moves, each answered by the player, and write the picture of the page."""
    torch.set_num_threads(1)
    alone = len(moves) == 1 and moves[0].isdigit()
    table = make_table([player, player] if alone else [player], settings={"opening_plies": 0})
    session = Session(table, None if alone else 0)
    for move in [""] * int(moves[0]) if alone else moves:
        if move:
            session.play(move)
        if not session.over:
            session.think()
    session.seat = session.turn
    server = GameServer(session)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("Chromium is needed")
    with tempfile.TemporaryDirectory() as profile:
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        switches += [f"--user-data-dir={profile}", "--virtual-time-budget=4000", f"--window-size={SIZE}"]
        switches += [f"--screenshot={target.resolve()}", f"{server.address}#hints"]
        subprocess.run([chromium, *switches], check=True, capture_output=True)
    server.shutdown()


if __name__ == "__main__":
    take(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
