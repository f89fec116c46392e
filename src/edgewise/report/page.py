"""Write `report.html`: one file without network access; strings of a run never become markup or code."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewise.config import files as run_files
from edgewise.config.errors import DataError
from edgewise.report.page_data import build_page_data
from edgewise.report.run_data import read_run
from edgewise.runs.zoo import is_in_zoo

SCRIPTS = (
    "basics.js",
    "chart_tools.js",
    "chart.js",
    "intervals.js",
    "replay_state.js",
    "replay_palette.js",
    "replay_draw.js",
    "replay_side.js",
    "replay_player.js",
    "sections.js",
    "main.js",
)
OVERVIEW_SCRIPTS = (
    "basics.js",
    "chart_tools.js",
    "chart.js",
    "intervals.js",
    "scatter.js",
    "sortable.js",
    "sections.js",
    "overview.js",
)
"""Scripts of a page of blocks, which `overview` builds."""


def write_report(folder: Path | str, *others: Path | str, target: Path | str | None = None) -> Path:
    """Write the report of a run, or of several side by side, and return its path.

    Runs of one recipe count as its seeds: they share one curve with a band.

    Args:
        folder: a run folder.
        others: further run folders.
        target: the file to write. If not given, it is `report.html` in the first folder, or
            `NAME-report.html` in the current folder for a policy that comes with edgewise.

    Raises:
        DataError: a folder is not a run folder, or the report cannot be written.
        CheckpointError: another version of edgewise wrote a run in a format that this one cannot read.
    """
    runs = [read_run(each) for each in (folder, *others)]
    path = _default_target(Path(folder)) if target is None else Path(target)
    if path.is_dir():
        raise DataError(f"{path}: is a folder, and a report is a file", hint="give the file to write")
    try:
        run_files.replace(path, page(build_page_data(runs)).encode())
    except OSError as error:
        raise DataError(f"{path}: the report cannot be written: {error.strerror}") from error
    return path


def _default_target(folder: Path) -> Path:
    return Path(f"{folder.name}-report.html") if is_in_zoo(folder) else folder / "report.html"


def page(data: Mapping[str, Any], scripts: Sequence[str] = SCRIPTS) -> str:
    """Build the whole page from the output of `build_page_data`, or from other data for other scripts."""
    script = '"use strict";\n(() => {\n' + "\n".join(map(_asset, scripts)) + "\n})();"
    style = _asset("style.css")
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(style)}; script-src {_hash(script)}"
    )
    return string.Template(_asset("page.html")).substitute(
        policy=policy,
        title=html.escape(str(data["title"])),
        style=style,
        script=script,
        data=_embedded(data),
    )


def _embedded(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot close the script element around it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return run_files.read_text(Path(__file__).parent / "assets" / name)


def _hash(text: str) -> str:
    """Return the source of a content security policy that allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
