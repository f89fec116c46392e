"""A file is imported once per real path and under one name, whatever ways lead to it."""

import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgewise.config.errors import ConfigError
from edgewise.plugins import Address, import_file
from edgewise.plugins.addresses import import_place

COUNTED = "import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\nclass Thing: pass\n"


@pytest.fixture
def counted(write, monkeypatch):
    """A file that counts how often it is run."""
    import builtins

    monkeypatch.setattr(builtins, "count", 0, raising=False)
    return write("code/thing_to_count.py", COUNTED)


def count():
    import builtins

    return builtins.count


@pytest.mark.parametrize(
    ("text", "place", "name"),
    [
        ("tsp.py", "tsp.py", ""),
        ("a b/tsp.py:TSPEnv", "a b/tsp.py", "TSPEnv"),
        ("/x/y.py:Z", "/x/y.py", "Z"),
        ("package.module:Name", "package.module", "Name"),
        ("a:b.py:C", "a:b.py", "C"),
    ],
)
def test_text_that_is_an_address(text, place, name):
    assert Address.parse(text) == Address(place, name)
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tsp",
        "graphwalk-ppo",
        "runs/x",
        "C:",
        ":x",
        "a.b",
        "a..b:c",
        "a:b.c",
        "a:1",
        "\0.py:X",
        "\ud800.py",
    ],
)
def test_text_that_is_none(text):
    assert Address.parse(text) is None


@pytest.mark.parametrize("place", ["~nobody/x.py", "x" * 5000 + ".py", "loop.py"])
def test_a_path_that_cannot_be_is_refused_in_words(place, folder):
    os.symlink("loop.py", folder / "loop.py")
    with pytest.raises(ConfigError, match="there is no file"):
        import_place(Address(place))


def test_a_file_is_imported_once(counted):
    first = import_file(counted)
    assert import_file(counted) is first
    assert import_file(counted.parent / ".." / "code" / counted.name) is first
    assert count() == 1


def test_after_import_by_name(counted, monkeypatch):
    monkeypatch.syspath_prepend(counted.parent)
    first = importlib.import_module("thing_to_count")
    assert import_file(counted) is first
    assert count() == 1


def test_before_import_by_name(counted):
    first = import_file(counted)
    assert importlib.import_module("thing_to_count") is first
    assert count() == 1


@pytest.mark.parametrize("link", ["thing_to_count.py", "other_name.py"])
@pytest.mark.parametrize("link_first", [True, False])
def test_through_a_symbolic_link(counted, folder, link, link_first):
    place = folder / "links" / link
    place.parent.mkdir()
    place.symlink_to(counted)
    ways = [place, counted] if link_first else [counted, place]
    assert import_file(ways[0]) is import_file(ways[1])
    assert count() == 1


def test_after_import_by_name_through_a_link_of_another_name(counted, folder, monkeypatch):
    (folder / "linked_thing.py").symlink_to(counted)
    monkeypatch.syspath_prepend(folder)
    first = importlib.import_module("linked_thing")
    assert import_file(counted) is first
    assert count() == 1


def test_through_a_linked_folder(counted, folder):
    (folder / "linked").symlink_to(counted.parent)
    assert import_file(folder / "linked" / counted.name) is import_file(counted)
    assert count() == 1


def test_as_the_main_program(write):
    script = write(
        "script.py",
        "class Thing: pass\n"
        "if __name__ == '__main__':\n"
        "    from pathlib import Path\n"
        "    from edgewise.plugins import import_file, address_of\n"
        "    import sys\n"
        "    assert import_file(Path('script.py')) is sys.modules['__main__']\n"
        "    print(address_of(Thing))\n",
    )
    done = subprocess.run([sys.executable, script.name], capture_output=True, text=True, cwd=script.parent)
    assert done.stdout == "script.py:Thing\n", done.stderr


def test_two_files_of_one_name(write):
    first, second = write("a/twin_file.py", "x = 1\n"), write("b/twin_file.py", "x = 2\n")
    assert (import_file(first).x, import_file(second).x) == (1, 2)
    assert (import_file(first).x, import_file(second).x) == (1, 2)


def test_a_file_with_the_name_of_a_module(write):
    import json

    found = import_file(write("json.py", "x = 1\n"))
    assert found.x == 1
    assert importlib.import_module("json") is json


def test_a_name_that_is_no_identifier(write):
    assert import_file(write("my-env 2.py", "x = 1\n")).x == 1


def test_files_beside_it_can_be_imported(write):
    write("code/beside_it.py", "y = 7\n")
    assert import_file(write("code/imports_it.py", "from beside_it import y\n")).y == 7


def test_two_files_with_different_files_of_one_name_beside_them(write):
    """Python has one module of a name; another folder's file is never used in place of the one beside it."""
    for place in ("a", "b"):
        write(f"{place}/same_beside.py", f"y = {place!r}\n")
        write(f"{place}/imports_{place}.py", "import json, os.path\nfrom same_beside import y\n")
    assert import_file(Path("a/imports_a.py")).y == "a"
    with pytest.raises(ConfigError, match="rename one of them"):
        import_file(Path("b/imports_b.py"))


def test_a_file_beside_it_that_imports_it_back(write):
    """The file has one name, so that both see the same classes."""
    write("code/there_and_back.py", "import round_trip\nassert round_trip.Base.ready\n")
    write("code/round_trip.py", "class Base: ready = True\nimport there_and_back\n")
    module = import_file(write("code/round_trip.py", "class Base: ready = True\nimport there_and_back\n"))
    assert module.there_and_back.round_trip is module


def test_a_file_of_a_package(write):
    write("outer_pack/__init__.py", "")
    write("outer_pack/inner/__init__.py", "")
    write("outer_pack/inner/sibling.py", "z = 3\n")
    module = import_file(write("outer_pack/inner/env.py", "from .sibling import z\nfrom .. import inner\n"))
    assert module.z == 3
    assert importlib.import_module("outer_pack.inner.env") is module


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\nraise ValueError('no')\n", "ValueError('no') in line 2"),
        ("x = (\n", "SyntaxError"),
        ("x = " + "-" * 100_000 + "1\n", "MemoryError"),
        ("import not_there_at_all\n", "not_there_at_all"),
        ("import sys\nsys.exit(3)\n", "SystemExit(3) in line 2"),
    ],
)
def test_a_file_that_fails_says_where(write, text, words):
    file = write("fails_to_import.py", text)
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            import_file(file)
        assert words in str(caught.value)
    assert "fails_to_import" not in sys.modules
    file.write_text("x = 1\n" * 10)
    assert import_file(file).x == 1


def test_a_module_that_is_not_there():
    with pytest.raises(ConfigError, match=r"there is no module no_such_package\.module"):
        import_place(Address("no_such_package.module"))


def test_a_module_that_needs_another(write, monkeypatch, folder):
    write("needs_more.py", "import no_such_package\n")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ConfigError, match="needs_more needs the module no_such_package"):
        import_place(Address("needs_more"))


def test_an_edited_file_is_not_imported_again_but_warned_of(write, caplog):
    file = write("edited_file.py", "x = 1\n")
    import_file(file)
    file.write_text("x = 22\n")
    with caplog.at_level(logging.WARNING):
        assert import_file(file).x == 1
    assert "start a new process" in caplog.text


def test_a_module_in_the_working_directory(write, folder, monkeypatch):
    """As in `edgewise train my_pkg.tsp:TSPEnv`; an installed program does not have it on its path."""
    write("far_pack/far_part.py", "VALUE = 3\n")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(folder))])
    assert import_place(Address.parse("far_pack.far_part:VALUE")).VALUE == 3
    assert sys.path[-1] == str(folder)


def test_but_not_where_that_is_a_run_folder(write, folder, monkeypatch):
    write("near_pack/near_part.py", "VALUE = 3\n")
    write("config.json", '{"recipe": "graphwalk-ppo"}')
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(folder))])
    with pytest.raises(ConfigError, match="there is no module near_pack"):
        import_place(Address.parse("near_pack.near_part:VALUE"))
