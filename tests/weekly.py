"""Run what no daily command runs, and write when each was last green: `make weekly`.

    python -m tests.weekly [--hours 4] [--only PATTERN] [--list] [--page]

An entry that has passed in the last six days is not run again, those that have waited longest come first,
and no entry begins that may not end within the hours. So a list that was interrupted goes on where it
stopped, and what takes longer than a night is finished in the next.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".weekly"
RESULTS, PAGE, LISTED = KEPT / "results.json", ROOT / "docs" / "weekly.md", ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- weekly -->", "<!-- end of weekly -->"
FRESH = datetime.timedelta(days=6)
PYTHON = sys.executable
PYTEST = (PYTHON, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider")
HEADER = "| what | last green | commit | minutes | last run |\n|---|---|---|---|---|"


@dataclass(frozen=True)
class Entry:
    """One part of the list.

    Attributes:
        name: shown, and the name of its log.
        command: what is run in the folder of the project.
        minutes: after which it is ended.
    """

    name: str
    command: tuple[str, ...]
    minutes: int


def entries(root: Path = ROOT, *, today: datetime.date | None = None) -> list[Entry]:
    """Return the whole list; each file of learning tests is an entry of its own, since they take longest."""
    year, week, _ = (today or datetime.date.today()).isocalendar()
    learning = sorted(
        str(file.relative_to(root))
        for file in (root / "tests").rglob("test_*.py")
        if "mark.learning" in file.read_text()
    )
    found = [Entry(f"learning: {file}", (*PYTEST, "-m", "learning", file), 60) for file in learning]
    export = "tests/experiments/export"
    return [
        *found,
        Entry("thorough", (*PYTEST, "-m", "thorough", "tests", f"--ignore={export}"), 60),
        Entry("export of everything", (*PYTEST, "-m", "thorough", export), 40),
        Entry("attack", (PYTHON, "-m", "tests.attack", "--seed", f"{year}{week:02}"), 40),
        Entry("kills of verbs", (PYTHON, "-m", "tests.attack.kills", "--seed", f"{year}{week:02}"), 20),
        Entry(
            "random mutants",
            (PYTHON, "-m", "tests.mutation.mutate", "--random", "100", "--seed", f"{year}{week:02}"),
            90,
        ),
        Entry("docs", ("make", "docs"), 15),
        Entry("notebooks", (*PYTEST, "tests/examples/test_notebooks.py"), 15),
        Entry("smoke benchmark", (PYTHON, "-m", "tests.benchmark.smoke"), 40),
    ]


def read() -> dict[str, dict[str, str]]:
    """Return what is known of earlier runs, by the name of an entry."""
    found: dict[str, dict[str, str]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def is_due(known: Mapping[str, str], now: datetime.datetime) -> bool:
    """Return whether an entry is to be run: it failed the last time, or passed too long ago."""
    green = known.get("green")
    passed_last = green is not None and known.get("verdict") == "passed"
    return not passed_last or now - datetime.datetime.fromisoformat(str(green)) > FRESH


def in_order(
    found: Sequence[Entry], results: Mapping[str, Mapping[str, str]], now: datetime.datetime
) -> list[Entry]:
    """Return the entries that are due, those that were run longest ago first."""
    due = [entry for entry in found if is_due(results.get(entry.name, {}), now)]
    return sorted(due, key=lambda entry: results.get(entry.name, {}).get("ran", ""))


def run(entry: Entry, *, log: Path) -> tuple[str, float]:
    """Run an entry, with everything that it starts in a session of its own; return verdict and seconds."""
    began = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            entry.command, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(timeout=60 * entry.minutes)
            verdict = {0: "passed", 5: "no tests"}.get(code, f"failed ({code})")
        except subprocess.TimeoutExpired:
            verdict = f"not done in {entry.minutes} minutes"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return verdict, time.monotonic() - began


def note(name: str, verdict: str, seconds: float, *, now: datetime.datetime, commit: str) -> None:
    """Keep the result of an entry."""
    kept = read()
    entry = kept.get(name, {}) | {
        "ran": now.isoformat(timespec="minutes"), "verdict": verdict, "minutes": f"{seconds / 60:.1f}"
    }  # fmt: skip
    if verdict == "passed":
        entry |= {"green": entry["ran"], "commit": commit}
    RESULTS.write_text(json.dumps(kept | {name: entry}, indent=1))


def page(found: Sequence[Entry], results: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of all entries."""
    rows = []
    for entry in found:
        known = results.get(entry.name, {})
        ran = f"{known['ran'][:10]}: {known['verdict']}" if "ran" in known else "never"
        cells = (known.get("green", "never")[:10], known.get("commit", ""), known.get("minutes", ""), ran)
        rows.append(f"| {entry.name} | {' | '.join(cells)} |")
    return "\n".join([HEADER, *rows])


def write_page(found: Sequence[Entry]) -> None:
    """Write the page, and the same table between the two marks in CONTRIBUTING.md."""
    table = page(found, read())
    about = "What `make weekly` runs, when each part was last green, and at which commit."
    PAGE.write_text(f"# The weekly list\n\n{about}\n\n{table}\n")
    text = LISTED.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    LISTED.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


def main() -> int:
    """Run what is due, and return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.weekly", description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=4.0, help="time for all of it (4)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="entries whose name matches")
    parser.add_argument("--list", action="store_true", help="show what is due and stop")
    parser.add_argument("--page", action="store_true", help="write the page and stop")
    options = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    every, now = entries(), datetime.datetime.now()
    due = [entry for entry in in_order(every, read(), now) if re.search(options.only, entry.name)]
    if options.list:
        print("\n".join(f"{entry.name} ({entry.minutes} minutes at most)" for entry in due))
        return 0
    until, failed = time.monotonic() + 3600 * options.hours, 0
    for entry in [] if options.page else due:
        usual = float(read().get(entry.name, {}).get("minutes", entry.minutes))
        if time.monotonic() + 60 * min(usual, entry.minutes) > until:
            print(f"{entry.name}: no time left; the next run begins with it")
            continue
        log = KEPT / f"{re.sub(r'[^a-z0-9]+', '-', entry.name)}.log"
        verdict, seconds = run(entry, log=log)
        commit = subprocess.run(
            ("git", "rev-parse", "--short", "HEAD"), cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        note(entry.name, verdict, seconds, now=datetime.datetime.now(), commit=commit)
        failed += verdict != "passed"
        print(f"{entry.name}: {verdict}, {seconds / 60:.1f} minutes ({log.relative_to(ROOT)})", flush=True)
        write_page(every)
    write_page(every)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
