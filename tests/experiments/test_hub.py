"""Packed policies pushed to a stand-in for the hub and pulled from it: equal files, and refusals in words."""

import filecmp

import pytest
from tests.experiments.hub_server import Hub

from edgewise.cli.main import main
from edgewise.config.errors import DataError
from edgewise.experiments import hub
from edgewise.runs.zoo import run_path

library = pytest.importorskip("huggingface_hub", reason="the hub needs pip install 'edgewise[hub]'")


@pytest.fixture
def server(monkeypatch, tmp_path):
    from huggingface_hub import constants

    with Hub() as made:
        for name, value in {
            "HF_ENDPOINT": made.address,
            "HF_TOKEN": "hf_test",
            "HF_HOME": str(tmp_path),
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(constants, "ENDPOINT", made.address)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            made.address + "/{repo_id}/resolve/{revision}/{filename}",
        )
        api = library.HfApi
        monkeypatch.setattr(library, "HfApi", lambda: api(endpoint=made.address, token="hf_test"))
        yield made


def test_what_was_pushed_is_pulled_verified_and_evaluated(server, tmp_path, capsys):
    assert main(["hub", "push", "zoo:hex-quick", "somebody/hex"]) == 0
    assert capsys.readouterr().out == f"pushed: {server.address}/somebody/hex\n"
    readme = server.repositories["somebody/hex"]["README.md"].decode()
    assert readme.startswith("---\nlibrary_name: edgewise\n")
    assert "edgewise hub pull somebody/hex --out hex" in readme
    target = tmp_path / "pulled"
    assert main(["hub", "pull", "somebody/hex", "--out", str(target)]) == 0
    own = run_path("zoo:hex-quick")
    names = sorted(str(path.relative_to(own)) for path in own.rglob("*") if path.is_file())
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()) == names
    assert filecmp.cmpfiles(own, target, names, shallow=False)[0] == names
    assert main(["verify", str(target)]) == 0
    assert main(["eval", str(target), "--episodes", "2"]) == 0


def test_what_is_no_policy_or_too_large_leaves_no_folder(server, tmp_path):
    server.repositories["somebody/other"] = {"config.json": b"{}"}
    with pytest.raises(DataError, match="holds no policy of edgewise"):
        hub.pull("somebody/other", tmp_path / "a")
    server.bytes_claimed["config.json"] = 2**31
    with pytest.raises(DataError, match="more than"):
        hub.pull("somebody/other", tmp_path / "b")
    with pytest.raises(DataError, match="somebody/none"):
        hub.pull("somebody/none", tmp_path / "c")
    assert [path for path in tmp_path.iterdir() if path.name in "abc" or path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["push", "zoo:hex-quick", "hex"], "OWNER/NAME"),
        (["pull", "a/b", "--private"], "--private: has no effect"),
        (["push", "a/b"], "got 1 names"),
        (["push", "nothing", "a/b"], "is not packed"),
    ],
)
def test_wrong_commands_say_what_is_expected(words, said, capsys):
    assert main(["hub", *words]) == 2
    assert said in capsys.readouterr().err
