"""A record names the file of an extension and the files beside it that it imports, with their digests."""

import hashlib

import pytest

from edgewise.plugins import changed_code, import_file, record_code


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def recorded(module, name="Thing"):
    (record,) = record_code({"address": getattr(module, name)})
    return record


def test_a_file_by_itself(write):
    file = write("alone.py", "class Thing: pass\n")
    record = recorded(import_file(file))
    assert record.to_plain() == {
        "address": "address",
        "file": str(file),
        "sha256": digest(file),
        "beside": {},
    }


def test_the_files_beside_it_that_it_imports(write):
    """Directly, through each other, inside functions and by relative import; no others."""
    write("code/first_of_all.py", "import second_of_all\n")
    write("code/second_of_all.py", "from pack_of_all import part\n")
    write("code/pack_of_all/__init__.py", "")
    write("code/pack_of_all/part.py", "from .sibling import x\n")
    write("code/pack_of_all/sibling.py", "x = 1\n")
    write("code/late_of_all.py", "")
    write("code/unused_of_all.py", "")
    import_file(write("code/other_plugin.py", ""))
    file = write(
        "code/uses_all.py", "import json, first_of_all\nclass Thing:\n  def f(self): import late_of_all\n"
    )
    assert list(recorded(import_file(file)).beside) == [
        "first_of_all.py",
        "late_of_all.py",
        "pack_of_all/__init__.py",
        "pack_of_all/part.py",
        "pack_of_all/sibling.py",
        "second_of_all.py",
    ]


def test_a_module_of_a_package(write):
    write("wide_pack/__init__.py", "")
    write("wide_pack/shared.py", "")
    write("wide_pack/envs/__init__.py", "")
    file = write(
        "wide_pack/envs/env.py", "from ..shared import *\nfrom wide_pack import shared\nclass Thing: pass\n"
    )
    assert set(recorded(import_file(file)).beside) == {"../shared.py", "../__init__.py"}


def test_what_ships_with_edgewise_or_has_no_file_is_left_out():
    from edgewise.config.errors import ConfigError

    cell = type("Cell", (), {"__module__": "no_such_module"})
    assert record_code({"a": ConfigError, "b": cell, "c": int}) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"code/changing.py": "# new\n"}, "changing.py has changed"),
        ({"code/beside_changing.py": "y = 2\n"}, "beside_changing.py has changed"),
        ({"code/unused.py": "y = 2\n"}, None),
    ],
)
def test_changes(write, change, words):
    text = "import beside_changing\nclass Thing: pass\n"
    write("code/beside_changing.py", "y = 1\n")
    module = import_file(write("code/changing.py", text))
    before = [recorded(module).to_plain()]
    for name, new in change.items():
        write(name, text + new if name == "code/changing.py" else new)
    changes = changed_code(before, [recorded(module)])
    assert len(changes) == (words is not None)
    assert words is None or words in changes[0]


def test_imports_that_come_and_go(write):
    write("code/comes_and_goes.py", "")
    file = write("code/imports_now.py", "import comes_and_goes\nclass Thing: pass\n")
    module = import_file(file)
    now = recorded(module)
    then = {**now.to_plain(), "beside": {}}
    assert "was not when the run began" in changed_code([then], [now])[0]
    then = {**now.to_plain(), "beside": {**now.beside, "gone.py": "0"}}
    assert "is not imported any more" in changed_code([then], [now])[0]


def test_what_cannot_be_compared(write):
    now = recorded(import_file(write("compared.py", "class Thing: pass\n")))
    assert "no longer comes from a file" in changed_code([{"address": "other"}], [])[0]
    assert "was not recorded" in changed_code([], [now])[0]


@pytest.mark.parametrize("beside", [None, 3, [1], {"/dev/zero": 1, "../../../etc/passwd": None}])
def test_a_record_of_a_stranger_opens_no_file(write, beside, monkeypatch):
    """It is compared with what was imported, and its paths are never read."""
    now = recorded(import_file(write("strange.py", "class Thing: pass\n")))
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"read {path}"))
    assert len(changed_code([{**now.to_plain(), "beside": beside}], [now])) == (
        2 if isinstance(beside, dict) else 0
    )
