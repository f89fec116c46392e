"""A headless Chromium, where the machine has one."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=8000",
)


@dataclass(frozen=True)
class Visit:
    """A page after its scripts ran: its elements as text, and what it wrote to the console."""

    dom: str
    console: list[str]


def visit(path: Path, *switches: str, place: str = "") -> Visit:
    """Open a file, at a place such as `#frame=3`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [
                CHROMIUM,
                *SWITCHES,
                f"--user-data-dir={profile}",
                *switches,
                "--dump-dom",
                f"{path.as_uri()}{place}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    return Visit(done.stdout, re.findall(r".*CONSOLE.*", done.stderr))


def drive(path: Path, script: str, *, place: str = "") -> Visit:
    """Open a copy of a report that may run one more script, given as the body of an async function."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", path.read_text())
    tail = f"<script>(async () => {{ {script} }})();</script></body>"
    copy = path.with_name("driven.html")
    copy.write_text(page.replace("</body>", tail))
    return visit(copy, place=place)
