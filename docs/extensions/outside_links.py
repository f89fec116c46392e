"""Links on pages lead to files of the source tree; here they lead to the pages that include those files.

Pages are read on the site and in the source tree. A link such as `../../src/edgewise/systems/hex/README.md`
works in the tree; on the site it leads to the page that includes the card. A file that no page includes is
offered as a download.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?P<open>!?\[[^\]]*\]\()(?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?(?P<close>\))")
INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)


def pages_of_files(docs: Path) -> dict[Path, Path]:
    """Return by included file the page of the site that shows it."""
    found = {}
    for page in docs.rglob("*.md"):
        for target in INCLUDE.findall(page.read_text(encoding="utf-8")):
            found[(page.parent / target).resolve()] = page
    return found


def rewrite(text: str, *, home: Path, page: Path, included: dict[Path, Path]) -> str:
    """Return the text of a page with links that lead to pages of the site.

    Args:
        text: Markdown.
        home: folder that the links are relative to.
        page: page on which the text is shown.
        included: see `pages_of_files`.
    """

    def replace(match: re.Match[str]) -> str:
        target = (home / match["target"]).resolve()
        if not target.exists():
            return match[0]
        target = included.get(target, target)
        if target.is_dir():
            return match[0].removeprefix(match["open"][:1]).partition("]")[0]
        relative = os.path.relpath(target, page.parent)
        return f"{match['open']}{relative}{match['anchor'] or ''}{match['close']}"

    return LINK.sub(replace, text)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    page = docs / f"{name}.md"
    included = pages_of_files(docs)
    match = INCLUDE.search(source[0])
    if match is None:
        source[0] = rewrite(source[0], home=page.parent, page=page, included=included)
        return
    file = (page.parent / match[1]).resolve()
    text = rewrite(file.read_text(encoding="utf-8"), home=file.parent, page=page, included=included)
    source[0] = source[0].replace(f"{match[0]}\n```", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to every page that is read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
