"""Run folders: made whole or not at all, never overwritten, one writer at a time."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from edgewise import load_policy
from edgewise.cli.main import main
from edgewise.config.errors import CheckpointError, ConfigError, DataError
from edgewise.report.page import write_report
from edgewise.runs.folder import RunFolder
from edgewise.runs.format import FORMAT


def test_a_new_folder_has_config_and_versions(tmp_path):
    folder = RunFolder.create(tmp_path / "runs" / "a", {"seed": 3})
    assert folder.config() == {"seed": 3}
    assert json.loads((folder.path / "versions.json").read_text())["torch"]
    assert folder.changed_versions() == {}
    assert sorted(path.name for path in folder.path.parent.iterdir()) == ["a"]


def test_changed_versions_are_found(tmp_path):
    folder = RunFolder.create(tmp_path / "a", {})
    path = folder.path / "versions.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "torch": "1.0"}))
    assert folder.changed_versions()["torch"][0] == "1.0"


@pytest.mark.parametrize(
    "make", [lambda path: path.mkdir(), lambda path: path.write_text(""), lambda path: path.symlink_to("x")]
)
def test_nothing_is_overwritten(tmp_path, make):
    make(tmp_path / "a")
    with pytest.raises(ConfigError, match="never overwritten") as error:
        RunFolder.create(tmp_path / "a", {})
    assert "edgewise resume" in str(error.value.hint)


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot create the run folder"):
        RunFolder.create(tmp_path / "file" / "run", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_what_is_no_run_is_said(tmp_path):
    with pytest.raises(DataError, match="not a run folder"):
        RunFolder(tmp_path)
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(DataError, match="is not JSON"):
        RunFolder(tmp_path).config()
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(DataError, match="not a JSON object"):
        RunFolder(tmp_path).config()


OLD = {"recipe": "graphwalk-ppo", "training": {"steps": 16, "num_envs": 8}}


@pytest.mark.parametrize("versions", [{"edgewise": "0.1.0", "torch": "2.13.0"}, None])
def test_a_run_of_0_1_is_refused_in_words(tmp_path, capsys, versions):
    folder = RunFolder.create(tmp_path / "a", OLD).path
    (folder / "versions.json").unlink()
    if versions is not None:
        (folder / "versions.json").write_text(json.dumps(versions))
    for open_run in (RunFolder, write_report):
        with pytest.raises(
            CheckpointError, match=r"written by edgewise 0\.1, which this version cannot read"
        ):
            open_run(folder)
    target = ["--out", str(tmp_path / "policy")]
    for verb, options in (("resume", []), ("eval", []), ("report", []), ("export", target)):
        assert main([verb, str(folder), *options]) == 3
        errors = capsys.readouterr().err
        assert f"{folder} was written by edgewise 0.1" in errors
        assert "Traceback" not in errors
    with pytest.raises(CheckpointError, match=r"edgewise 0\.1"):
        load_policy(folder)


def test_a_run_of_a_later_format_is_refused_in_words(tmp_path):
    folder = RunFolder.create(tmp_path / "a", {})
    path = folder.path / "versions.json"
    assert json.loads(path.read_text())["format"] == FORMAT
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": FORMAT + 1}))
    with pytest.raises(CheckpointError, match=f"format {FORMAT + 1}, and .* reads format .*{FORMAT}"):
        RunFolder(folder.path)


def test_a_second_writer_is_refused_and_names_the_first(tmp_path):
    folder = RunFolder.create(tmp_path / "a", {})
    child = os.fork()
    if child == 0:
        with folder.locked():
            (tmp_path / "held").touch()
            time.sleep(30)
        os._exit(0)
    while not (tmp_path / "held").exists():
        time.sleep(0.005)
    with pytest.raises(ConfigError, match=f"process {child}"), folder.locked():
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with folder.locked():
        assert f"process {os.getpid()}" in (folder.path / "lock").read_text()
    with folder.locked():
        pass


def test_making_a_folder_needs_no_torch():
    script = "import sys; import edgewise.runs.folder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
