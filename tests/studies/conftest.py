"""Studies whose children are stand-ins that take milliseconds, and a display that can break in."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from edgewise.studies import scheduler
from edgewise.studies.scheduler import Program

STUB = Path(__file__).with_name("stub_child.py")


class Watcher:
    """A display that calls a function with every status."""

    def __init__(self, on_update):
        self.on_update, self.shown = on_update, []

    def start(self, name):
        pass

    def update(self, status):
        self.shown.append(status)
        self.on_update(status)

    def close(self):
        pass


@pytest.fixture
def program():
    return Program((sys.executable, "-S", str(STUB)))


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Returns how often each run trained each frame."""
    file = tmp_path / "ledger.txt"
    monkeypatch.setenv("LEDGER", str(file))
    return lambda: Counter(file.read_text().splitlines()) if file.exists() else Counter()


@pytest.fixture
def watch(monkeypatch):
    """Sets what is done with every status of a study."""
    monkeypatch.setattr(scheduler, "POLL", 0.01)

    def set_watcher(on_update=lambda status: None):
        watcher = Watcher(on_update)
        monkeypatch.setattr(scheduler, "make_display", lambda: watcher)
        return watcher

    set_watcher()
    return set_watcher
