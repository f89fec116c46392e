"""Writes `report.html`: one file, no network, and no string of a run can become markup or code in it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import string
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from edgewise.config.errors import DataError
from edgewise.report.run_data import read_run
from edgewise.report.story import tell

SCRIPTS = (
    "basics.js",
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


def write_report(folder: Path | str, *others: Path | str, target: Path | str | None = None) -> Path:
    """Write the report of a run, or of several side by side, and return its path.

    Runs of one recipe count as seeds of it: their curves become one line with a band.

    Args:
        folder: a run folder.
        others: more of them.
        target: the file to write; `report.html` in the first folder if not given.

    Raises:
        DataError: a folder is no run, or the report cannot be written.
    """
    runs = [read_run(each) for each in (folder, *others)]
    path = Path(folder) / "report.html" if target is None else Path(target)
    if path.is_dir():
        raise DataError(f"{path}: is a folder, and a report is a file", hint="give the file to write")
    stage = path.with_name(f".{path.name}.{os.getpid()}.stage")
    try:
        stage.write_text(page(tell(runs)), encoding="utf-8")
        stage.replace(path)
    except OSError as error:
        raise DataError(f"{path}: the report cannot be written: {error.strerror}") from error
    return path


def page(story: Mapping[str, Any]) -> str:
    """The whole page for a story that `tell` told."""
    script = '"use strict";\n(() => {\n' + "\n".join(map(_asset, SCRIPTS)) + "\n})();"
    style = _asset("style.css")
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(style)}; script-src {_hash(script)}"
    )
    return string.Template(_asset("page.html")).substitute(
        policy=policy,
        title=html.escape(str(story["title"])),
        style=style,
        script=script,
        story=_embedded(story),
    )


def _embedded(story: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(story, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return files("edgewise.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a content security policy names an inline script or style that may stand."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
