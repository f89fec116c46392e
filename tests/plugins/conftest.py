"""A folder of its own for each test, with everything that a test imports or allows undone after it."""

import pytest
from tests.isolation import isolated


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    with isolated():
        yield tmp_path


@pytest.fixture
def write(folder):
    """Writes a file below the folder, and returns its path."""

    def to(name, text):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return to
