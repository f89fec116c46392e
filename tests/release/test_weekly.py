"""The weekly list goes on where it stopped, and its page says what was never run."""

import datetime
import sys

import pytest
from tests import weekly
from tests.weekly import BEGIN, END, Entry

NOW = datetime.datetime(2030, 5, 6, 7, 8)
LISTED = [Entry("a", ("true",), 1), Entry("b", ("true",), 1), Entry("c", ("true",), 1)]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(weekly, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(weekly, "PAGE", tmp_path / "weekly.md")
    monkeypatch.setattr(weekly, "LISTED", tmp_path / "CONTRIBUTING.md")
    (tmp_path / "CONTRIBUTING.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    return tmp_path


def test_what_passed_lately_is_left_out_and_the_oldest_comes_first(kept):
    days = datetime.timedelta(days=1)
    weekly.note("a", "passed", 60, now=NOW - 2 * days, commit="1")
    weekly.note("b", "passed", 60, now=NOW - 9 * days, commit="1")
    assert [entry.name for entry in weekly.in_order(LISTED, weekly.read(), NOW)] == ["c", "b"]
    weekly.note("a", "failed (1)", 60, now=NOW - days, commit="2")
    weekly.note("c", "no tests", 60, now=NOW, commit="2")
    assert [entry.name for entry in weekly.in_order(LISTED, weekly.read(), NOW)] == ["b", "a", "c"]


def test_the_page_keeps_when_it_was_last_green(kept):
    weekly.note("a", "passed", 90, now=NOW - datetime.timedelta(days=3), commit="abc")
    weekly.note("a", "failed (1)", 30, now=NOW, commit="def")
    weekly.write_page(LISTED)
    text = (kept / "CONTRIBUTING.md").read_text()
    assert text.startswith(f"before\n{BEGIN}\n| what |")
    assert text.endswith(f"\n{END}\nafter\n")
    assert "| a | 2030-05-03 | abc | 0.5 | 2030-05-06: failed (1) |" in text
    assert "| b | never |  |  | never |" in text
    assert "old" not in text
    weekly.write_page(LISTED)
    assert (kept / "CONTRIBUTING.md").read_text() == text


@pytest.mark.parametrize(
    ("words", "minutes", "verdict"),
    [
        ("pass", 1, "passed"),
        ("raise SystemExit(3)", 1, "failed (3)"),
        ("raise SystemExit(5)", 1, "no tests"),
        ("import time; time.sleep(60)", 0.02, "not done in 0.02 minutes"),
    ],
)
def test_how_an_entry_ended(tmp_path, words, minutes, verdict):
    found, seconds = weekly.run(Entry("x", (sys.executable, "-c", words), minutes), log=tmp_path / "log")
    assert found == verdict
    assert seconds < 50


def test_every_file_of_learning_tests_is_in_the_list():
    names = [entry.name for entry in weekly.entries()]
    assert "learning: tests/learning/test_graphwalk.py" in names
    assert {"thorough", "attack", "random mutants", "docs", "notebooks", "smoke benchmark"} <= set(names)
    assert len(names) == len(set(names))
