"""The site: every page is in its contents, every public name is described, links lead to pages."""

import importlib.util
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest

import edgewise as ew
from edgewise.algorithms.registry import ALGORITHMS
from edgewise.plugins import environments
from edgewise.systems import SYSTEMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]


def extension(name):
    pytest.importorskip("sphinx", reason="the site's extensions need sphinx: pip install -e '.[docs]'")
    spec = importlib.util.spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed():
    """The pages that the contents on the first page name."""
    blocks = re.findall(
        r"^```\{toctree\}\n(.*?)^```", (DOCS / "index.md").read_text(), re.MULTILINE | re.DOTALL
    )
    names = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    return {page for name in names for page in DOCS.glob(f"{name}.md")}


def test_every_page_is_in_the_contents():
    assert {page for page in PAGES if page.name != "index.md" or page.parent != DOCS} == listed()


def test_every_public_name_is_described():
    text = "".join(page.read_text() for page in sorted((DOCS / "reference/python").glob("*.md")))
    described = re.findall(r"^\.\. auto\w+:: edgewise\.(\w+)$", text, re.MULTILINE)
    assert sorted(described) == sorted(set(ew.__all__) - {"__version__"})
    listed = re.findall(r"`(\w+)`", (DOCS / "reference/python.md").read_text().partition("|---|")[2])
    assert sorted(listed) == sorted(described)


def test_every_system_has_its_card_on_the_site():
    declared = {import_module(module).SYSTEM.name for module in SYSTEMS}
    assert {page.stem for page in (DOCS / "cards").glob("*.md")} >= declared


def test_every_example_is_on_the_site():
    examples = {path.parent.name for path in (ROOT / "examples").glob("*/README.md")}
    assert {page.stem for page in (DOCS / "examples").glob("*.md")} - {"index"} == examples


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_included_files_exist(page):
    for file in re.findall(r"^```\{(?:include|literalinclude)\} (\S+)$", page.read_text(), re.MULTILINE):
        assert (page.parent / file).exists()


def test_a_link_to_a_file_that_a_page_includes_leads_to_that_page():
    rewrite, pages = extension("outside_links").rewrite, extension("outside_links").pages_of_files(DOCS)
    page = DOCS / "systems/hex.md"
    card = "[card](../../src/edgewise/systems/hex/README.md#rules)"
    assert rewrite(card, home=page.parent, page=page, included=pages) == "[card](../cards/hex.md#rules)"
    readme = ROOT / "examples/tsp"
    link = rewrite("[file](tsp.py)", home=readme, page=DOCS / "examples/tsp.md", included=pages)
    assert link == "[file](../../examples/tsp/tsp.py)"
    for other in ("[web](https://example.org/a)", "[gone](no/such/file.md)", "[here](#rules)"):
        assert rewrite(other, home=page.parent, page=page, included=pages) == other


def test_tables_in_docstrings_become_tables():
    convert = extension("docstring_tables").convert
    lines = ["Before.", "", "    | a | b |", "    |---|---|", "    | 1 | x y |", "", "After."]
    assert [line for line in convert(lines) if line] == [
        "Before.",
        "    .. list-table::",
        "       :header-rows: 1",
        "       * - a",
        "         - b",
        "       * - 1",
        "         - x y",
        "After.",
    ]
    assert convert(["No | table", ""]) == ["No | table", ""]


def broken_links(site):
    """Links of a built site that lead to no file or heading of it; links to the web are left out."""
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    for path, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            file, _, anchor = re.sub(r"\?v=\w+$", "", link).partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            if re.match(r"[a-z]+:", link):
                continue
            if not target.exists() or (anchor and target in texts and f'id="{anchor}"' not in texts[target]):
                yield f"{path.relative_to(site)}: {link}"


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">b</a> <a href="https://example.org">web</a> <p id="y">'
    )
    assert list(broken_links(tmp_path)) == ["a.html: b.html#x"]
    (tmp_path / "b.html").write_text('<p id="x"><a href="a.html#y">a</a><a href="#z">here</a>')
    assert list(broken_links(tmp_path)) == ["b.html: #z"]


@pytest.mark.thorough
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("myst_parser", reason="building the site needs pip install -e '.[docs]'")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(DOCS),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "edgewise train" in (tmp_path / "reference/commands.html").read_text()
    assert not list(broken_links(tmp_path))


def test_every_algorithm_has_a_page_whose_settings_and_defaults_are_true():
    for name, entry in ALGORITHMS.items():
        text = (DOCS / f"algorithms/{name.replace('_', '-')}.md").read_text()
        fields = entry.load("config").model_fields
        shown = re.findall(r"^\| `--algorithm\.([\w-]+)` \| (\S+) \|", text, re.MULTILINE)
        assert shown
        for setting, default in shown:
            value = fields[setting.replace("-", "_")].get_default(call_default_factory=True)
            assert default == {None: "none"}.get(
                value, f"{value:g}" if isinstance(value, float) else str(value).lower()
            )


def test_the_gallery_shows_environments_that_there_are():
    text = (DOCS / "gallery.md").read_text()
    shown = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert set(shown) <= set(environments())
    pictures = {path.name for path in (DOCS / "images/episodes").glob("*.gif")}
    assert set(re.findall(r"episodes/(\w+\.gif)", text)) == pictures


def test_the_version_is_the_same_everywhere():
    written = {
        "pyproject.toml": rf'^version = "{ew.__version__}"$',
        "CITATION.cff": rf"^version: {ew.__version__}$",
        "CHANGELOG.md": rf"^## \[{ew.__version__}\]",
    }
    for name, pattern in written.items():
        assert re.search(pattern, (ROOT / name).read_text(), re.MULTILINE), name
