"""What the parity programs share: they replay a file of recorded cases and say how far they are off."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

LIMIT = 1e-6


def compare_file(
    arguments: list[str], replay: Callable[[dict], dict[str, float]], *, name: str, about: str | None
) -> int:
    """Prints the differences of every case by what differs; the exit code, 1 if one is above the limit."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.parity.{name}", description=about)
    parser.add_argument("file", type=Path, help="recorded trajectories, as in recordings/")
    cases = json.loads(parser.parse_args(arguments).file.read_text())["cases"]
    worst = 0.0
    for number, case in enumerate(cases):
        found = replay(case)
        worst = max(worst, *found.values())
        say(f"case {number}: " + ", ".join(f"{part} {value:.1e}" for part, value in found.items()))
    say(f"largest difference {worst:.2e} over {len(cases)} cases; {'fails' if worst > LIMIT else 'agrees'}")
    return int(worst > LIMIT)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
