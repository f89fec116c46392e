"""Two smoke runs of the whole benchmark give the same tables, bit for bit, and both verify.

python -m tests.benchmark.smoke
"""

import sys
import tempfile
from pathlib import Path

from edgewise.cli.main import main

TABLES = (
    *("results.json", "table.csv", "table.tex", "aggregates.csv", "aggregates.tex"),
    *("profiles.csv", "curves.csv", "instances.json"),
)
"""Files without a time."""


def run() -> int:
    """Return 0 if everything is equal, else 1."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch, name) for name in ("first", "second")]
        codes = [main(["benchmark", "graphs", "--smoke", "--to", str(folder)]) for folder in folders]
        codes += [main(["verify", str(folder)]) for folder in folders]
        different = [n for n in TABLES if len({(folder / n).read_bytes() for folder in folders}) > 1]
    sys.stderr.write(f"exit codes {codes}; files that differ: {different or 'none'}\n")
    return 1 if any(codes) or different else 0


if __name__ == "__main__":
    sys.exit(run())
