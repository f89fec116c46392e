"""A run folder from somebody else: no link in it leads outside, and what is read is bounded."""

import json
import os
import shutil

import pytest
from tests.cli.conftest import FLAGS

from edgewise.cli.main import main
from edgewise.config import files as run_files
from edgewise.config.errors import ConfigError, DataError
from edgewise.evaluation.result import Evaluation
from edgewise.report.run_data import read_run
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder

SECRET = "a-secret-of-the-reader"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small run with everything that a run folder may hold."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    flags = [flag for flag in FLAGS if "tensorboard" not in flag and "evaluation.every" not in flag]
    assert main(["train", "graphwalk-ppo", *flags, "--evaluation.every=40", "--out", str(folder)]) == 0
    assert (folder / "tensorboard").is_dir()
    return folder


@pytest.fixture
def run(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


FILES = (
    "lock",
    "events.jsonl",
    "metrics.csv",
    "timing.csv",
    "config.json",
    "versions.json",
    "report.html",
    "code.json",
    ".config.json.stage",
    ".metrics.csv.stage",
    "nonfinite-000000000096.safetensors",
    "evaluations/000000000096.json",
    "evaluations/000000000128.json",
    "evaluations/.000000000128.json.stage",
    "replays/000000000096-0.json",
    "replays/000000000128-0.json",
    "checkpoints/best.json",
    "checkpoints/step-000000000096/manifest.json",
    "checkpoints/step-000000000096/manifest.sha256",
    "checkpoints/step-000000000096/state.json",
    "checkpoints/step-000000000096/algorithm.safetensors",
)
FOLDERS = ("tensorboard", "evaluations", "replays", "checkpoints", "checkpoints/step-000000000096")
VERBS = {
    "resume": lambda run: ["resume", str(run), "--total-frames", "128"],
    "report": lambda run: ["report", str(run)],
    "eval": lambda run: ["eval", str(run), "--episodes", "2"],
    "verify": lambda run: ["verify", str(run)],
}


def link_outside(run, name):
    """Replace a file or folder of a run by a link to one outside, with the same content and a secret."""
    inside, outside = run / name, run.parent / "outside"
    outside.mkdir()
    target = outside / inside.name.lstrip(".")
    if name in FOLDERS:
        shutil.move(inside, target)
        (target / "config.json").write_text("{}")
    else:
        if inside.exists():
            shutil.move(inside, target)
            content = target.read_bytes()
            is_json = inside.suffix == ".json"
            target.write_bytes(
                content.replace(b"{", b'{"%s": 1,' % SECRET.encode(), 1) if is_json else content
            )
        else:
            target.write_text(SECRET)
        if inside.suffix in (".csv", ".jsonl"):
            target.write_text(target.read_text().replace("frames", SECRET))
    inside.parent.mkdir(exist_ok=True)
    inside.symlink_to(target)
    return outside


def snapshot(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_a_link_leads_nowhere(run, capsys, name, verb):
    outside = link_outside(run, name)
    before = snapshot(outside)
    code = main(VERBS[verb](run))
    assert snapshot(outside) == before
    shown = "".join(capsys.readouterr())
    assert SECRET not in shown
    assert "Traceback" not in shown
    if (run / "report.html").exists() and name != "report.html":
        assert SECRET not in (run / "report.html").read_text()
    if verb == "resume":
        assert code in (2, 3)
        assert "symbolic link" in shown or name == "code.json"
    if verb == "verify":
        assert code in (2, 3)


@pytest.mark.parametrize("name", ["lock", "events.jsonl", "timing.csv"])
def test_a_hard_link_is_not_written_to(run, capsys, name):
    outside = run.parent / "outside"
    if not (run / name).exists():
        (run / name).write_text("")
    os.link(run / name, outside)
    before = outside.read_bytes()
    main(VERBS["resume"](run))
    assert outside.read_bytes() == before
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["events.jsonl", "metrics.csv", "lock", "config.json"])
def test_a_pipe_does_not_hang(run, capsys, name):
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    for verb in ("resume", "report"):
        main(VERBS[verb](run))
    assert "Traceback" not in capsys.readouterr().err


def test_a_run_folder_may_itself_be_behind_a_link(run, tmp_path):
    (tmp_path / "runs").symlink_to(tmp_path)
    assert main(VERBS["resume"](tmp_path / "runs" / "run")) == 0
    (tmp_path / "alias").symlink_to(run)
    assert main(["resume", str(tmp_path / "alias"), "--total-frames", "160"]) == 0
    assert main(["verify", str(tmp_path / "alias")]) == 0


@pytest.mark.parametrize("name", ["replays", "evaluations", "tensorboard"])
def test_a_removed_folder_is_made_again(run, name):
    shutil.rmtree(run / name)
    assert main(VERBS["resume"](run)) == 0
    assert list((run / name).iterdir())


JSONS = {
    "too deep": "[" * 100 + "]" * 100,
    "much too deep": "[" * 100_000,
    "digits": "1" * 5000,
    "digits of a fraction": "0." + "1" * 5000,
    "infinite": "Infinity",
    "not a number": "[NaN]",
    "too large a number": "1e999",
    "cut": '{"a": ',
    "empty": "",
}


@pytest.mark.parametrize("name", JSONS)
def test_json_is_bounded(tmp_path, name):
    with pytest.raises(ValueError):
        run_files.parse_json(JSONS[name])
    (tmp_path / "evaluation.json").write_text(JSONS[name])
    with pytest.raises(DataError, match=r"evaluation\.json"):
        Evaluation.load(tmp_path / "evaluation.json")
    (tmp_path / "config.json").write_text(JSONS[name])
    with pytest.raises(DataError, match=r"config\.json"):
        RunFolder(tmp_path).config()


def test_what_json_may_hold():
    text = json.dumps({"a": [1, -2.5, 1e300, None, True, "x" * 10_000], "b": {"c": [[[]]]}})
    assert run_files.parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "name", ["config.json", "evaluations/000000000096.json", "metrics.csv", "events.jsonl"]
)
def test_sizes_are_bounded(run, name):
    """A file with a hole, which takes no space on disk."""
    with open(run / name, "r+b") as file:
        file.truncate(run_files.LARGEST_TABLE + 1)
    notes = read_run(run).notes
    assert any("accepted" in note for note in notes)
    with pytest.raises((ConfigError, DataError)):
        raise DataError("") if name != "config.json" else RunFolder(run).config()


class TestVerify:
    def test_a_whole_run(self, run, capsys):
        capsys.readouterr()
        assert main(["verify", str(run), "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["whole"]
        names = {file["name"] for file in data["files"]}
        assert {"config.json", "metrics.csv", "events.jsonl", "checkpoints/best.json"} <= names
        assert {f"checkpoints/{path.name}" for path in checkpoint.saved(run / "checkpoints")} <= names
        assert sum(name.startswith("evaluations/") for name in names) == len(os.listdir(run / "evaluations"))
        assert all(file["whole"] and file["fault"] is None for file in data["files"])

    @pytest.mark.parametrize("cut", [1, 7])
    def test_every_damaged_file_is_named(self, run, capsys, cut):
        places = [
            path
            for path in sorted(run.rglob("*"))
            if path.is_file() and path.name not in ("lock", "report.html")
        ]
        places = [path for path in places if "tensorboard" not in path.parts]
        for path in places:
            content = path.read_bytes()
            path.write_bytes(content[:-cut])
            capsys.readouterr()
            if path.name in ("config.json", "versions.json") and cut == 1:
                path.write_bytes(content[: len(content) // 2])
            code = main(["verify", str(run), "--json"])
            data = json.loads(capsys.readouterr().out)
            path.write_bytes(content)
            damaged = [file["name"] for file in data.get("files", ()) if not file["whole"]]
            name = str(path.relative_to(run))
            assert code == 3, name
            assert any(name.startswith(each) for each in damaged), name
        assert main(["verify", str(run)]) == 0

    def test_what_is_no_run(self, tmp_path, capsys):
        assert main(["verify", str(tmp_path)]) == 2
        assert "is not a run folder" in capsys.readouterr().err

    def test_a_run_without_a_checkpoint(self, run, capsys):
        for path in checkpoint.saved(run / "checkpoints"):
            shutil.rmtree(path)
        assert main(["verify", str(run)]) == 3
        assert "there is no checkpoint" in capsys.readouterr().out
