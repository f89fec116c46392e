"""Links in a run folder that lead outside: no verb follows one, whatever it is in place of."""

import shutil
from pathlib import Path

from tests.attack.judge import CRASH, run, snapshot
from tests.runs.test_untrusted_run import FILES, FOLDERS, SECRET, VERBS, link_outside


def attack_links(place: Path, make_run, names=(*FILES, *FOLDERS)):
    """Put a link in place of each file and folder, and run every verb; return their number and faults."""
    whole, faults = make_run(place / "whole"), []
    for name in names:
        for verb, command in VERBS.items():
            copied, outside = place / "copy" / "run", None
            shutil.rmtree(copied.parent, ignore_errors=True)
            shutil.copytree(whole, copied)
            if name in FOLDERS:
                (copied / name).mkdir(exist_ok=True)
            outside = link_outside(copied, name)
            before = snapshot(outside)
            outcome = run(command(copied))
            page = copied / "report.html"
            shown = outcome.out + outcome.err
            if page.is_file() and not page.is_symlink():
                shown += page.read_text()
            if outcome.code == CRASH or outcome.code < 0 or snapshot(outside) != before or SECRET in shown:
                faults.append(f"{name}: {verb}: exit code {outcome.code}")
    return len(names), faults
