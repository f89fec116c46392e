"""Two hundred ways to spoil a checkpoint: each is refused in one line, and nothing of it is loaded or run."""

import hashlib
import json
import os
import random
import shutil
import sys

import pytest
import torch
from tests.runs.states import same

from edgewise.config.errors import CheckpointError
from edgewise.runs.checkpoint import contents, segments
from edgewise.runs.checkpoint import store as checkpoint

FLIPS, CUTS = 100, 30


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A folder with an older and a newer checkpoint; the newer has parts of every kind, and segments."""
    folder = tmp_path_factory.mktemp("pristine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "LARGE", 512)
        for step in (1, 2):
            state = {
                "algorithm": {"weight": torch.randn(4, 5), "moments": {0: torch.zeros(3, dtype=torch.int64)}},
                "replay": torch.arange(500, dtype=torch.int32) * step,
                "counters": {"frames": step, "value": float("inf"), "names": ("a", None)},
            }
            checkpoint.save(folder, state, step=step)
    return folder


def victims(folder):
    return sorted(path.name for path in (folder / "step-000000000002").iterdir())


def flip(path, dice):
    file = path / dice.choice(sorted(entry.name for entry in path.iterdir()))
    content = bytearray(file.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    rewrite(file, bytes(content))


def cut(path, dice):
    file = path / dice.choice(sorted(entry.name for entry in path.iterdir()))
    content = file.read_bytes()
    rewrite(file, content[: dice.randrange(len(content))])


def rewrite(file, content):
    """Replace a file rather than write into it: segments are links that the older checkpoint shares."""
    file.unlink()
    file.write_bytes(content)


def remove(name):
    return lambda path, dice: (path / name).unlink()


def append(name):
    return lambda path, dice: rewrite(path / name, (path / name).read_bytes() + b"\0")


def empty(name):
    return lambda path, dice: rewrite(path / name, b"")


def swap_for_link(name):
    def spoil(path, dice):
        kept = path.parent / f"elsewhere-{name}"
        shutil.move(path / name, kept)
        (path / name).symlink_to(kept)

    return spoil


def swap_for_folder(name):
    def spoil(path, dice):
        (path / name).unlink()
        (path / name).mkdir()

    return spoil


def swap_for_pipe(name):
    def spoil(path, dice):
        (path / name).unlink()
        os.mkfifo(path / name)

    return spoil


def edited(change):
    """Edit the manifest and seal it again, as someone would who knows the format."""

    def spoil(path, dice):
        manifest = json.loads((path / "manifest.json").read_text())
        change(manifest, path)
        seal(path, json.dumps(manifest).encode())

    return spoil


def seal(path, content):
    rewrite(path / "manifest.json", content)
    rewrite(path / "manifest.sha256", hashlib.sha256(content).hexdigest().encode() + b"\n")


def relisted(name, content):
    """Change a file and make the manifest agree: only a look at the content can tell."""

    def spoil(path, dice):
        rewrite(path / name, content(path) if callable(content) else content)
        manifest = json.loads((path / "manifest.json").read_text())
        raw = (path / name).read_bytes()
        manifest["files"][name] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        seal(path, json.dumps(manifest).encode())

    return spoil


def skeleton(change):
    def content(path):
        state = json.loads((path / "state.json").read_text())
        return json.dumps(change(state)).encode()

    return relisted("state.json", content)


def table(tensor, field, value):
    return edited(lambda manifest, path: manifest["tensors"][tensor].__setitem__(field, value))


def listed(name, field, value):
    return edited(lambda manifest, path: manifest["files"][name].__setitem__(field, value))


def renamed(old, new):
    def change(manifest, path):
        manifest["files"][new] = manifest["files"].pop(old)

    return edited(change)


def added(name, content=b"import os"):
    return lambda path, dice: (path / name).write_bytes(content)


def outside(path, dice):
    """A manifest that names a file outside the folder, with the right size and hash."""
    secret = path.parent / "secret.safetensors"
    shutil.copy(path / "algorithm.safetensors", secret)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"]["../secret.safetensors"] = manifest["files"].pop("algorithm.safetensors")
    for entry in manifest["tensors"].values():
        if entry["file"] == "algorithm.safetensors":
            entry["file"] = "../secret.safetensors"
    seal(path, json.dumps(manifest).encode())
    (path / "algorithm.safetensors").unlink()


def bomb(path):
    """A pickle that would leave a mark if anything unpickled it."""
    mark = path.parent / "executed"
    return (
        b"\x80\x04cos\nsystem\n(X"
        + len(f"touch {mark}").to_bytes(4, "little")
        + f"touch {mark}".encode()
        + b"tR."
    )


def other_safetensors(tensors):
    def content(path):
        from safetensors.torch import save

        return save(tensors)

    return content


def by_hand():
    """Everything that is not left to chance, by a name that says what it is."""
    cases = {}
    for name in ("algorithm.safetensors", "state.json", "manifest.json", "manifest.sha256"):
        for spoil in (remove, append, empty, swap_for_link, swap_for_folder, swap_for_pipe):
            cases[f"{spoil.__name__} {name}"] = spoil(name)
    cases |= {
        "code added": added("setup.py"),
        "pickle added": added("weights.pt"),
        "hidden file added": added(".hidden"),
        "folder added": lambda path, dice: (path / "more").mkdir(),
        "outside file": outside,
        "absolute file": renamed("algorithm.safetensors", "/etc/passwd"),
        "file named like a folder": renamed("algorithm.safetensors", ".."),
        "file with a null": renamed("algorithm.safetensors", "algorithm\0.safetensors"),
        "pickle inside": relisted("algorithm.safetensors", bomb),
        "pickle as state": relisted("state.json", bomb),
        "foreign tensors": relisted("algorithm.safetensors", other_safetensors({"x": torch.ones(1)})),
        "foreign shape": relisted(
            "algorithm.safetensors",
            other_safetensors(
                {
                    "algorithm/weight": torch.ones(5, 4),
                    "algorithm/moments/0": torch.zeros(3, dtype=torch.int64),
                }
            ),
        ),
        "foreign dtype": relisted(
            "algorithm.safetensors",
            other_safetensors(
                {
                    "algorithm/weight": torch.ones(4, 5),
                    "algorithm/moments/0": torch.zeros(3, dtype=torch.int32),
                }
            ),
        ),
        "newer version": edited(lambda manifest, path: manifest.__setitem__("version", 2)),
        "version as text": edited(lambda manifest, path: manifest.__setitem__("version", "1")),
        "version as truth": edited(lambda manifest, path: manifest.__setitem__("version", True)),
        "no version": edited(lambda manifest, path: manifest.pop("version")),
        "other format": edited(lambda manifest, path: manifest.__setitem__("format", "zip")),
        "negative step": edited(lambda manifest, path: manifest.__setitem__("step", -1)),
        "step as text": edited(lambda manifest, path: manifest.__setitem__("step", "2")),
        "unknown field": edited(lambda manifest, path: manifest.__setitem__("hook", "os.system")),
        "no files": edited(lambda manifest, path: manifest.__setitem__("files", {})),
        "files as list": edited(lambda manifest, path: manifest.__setitem__("files", [])),
        "no tensors": edited(lambda manifest, path: manifest.__setitem__("tensors", {})),
        "manifest a list": lambda path, dice: seal(path, b"[]"),
        "manifest not JSON": lambda path, dice: seal(path, b"\xff\xfe"),
        "manifest too deep": lambda path, dice: seal(path, b"[" * 100_000),
        "manifest a huge number": lambda path, dice: seal(path, b'{"format":' + b"9" * 10_000 + b"}"),
        "shape in the table": table("algorithm/weight", "shape", [2, 10]),
        "shape with a negative": table("algorithm/weight", "shape", [-4, -5]),
        "dtype in the table": table("algorithm/weight", "dtype", "int32"),
        "unknown dtype": table("algorithm/weight", "dtype", "object"),
        "tensor in another file": table("algorithm/weight", "file", "state.json"),
        "tensor in an absent file": table("algorithm/weight", "file", "replay.safetensors"),
        "tensor nowhere": table("algorithm/weight", "file", None),
        "tensor twice": table("algorithm/weight", "segments", ["algorithm.safetensors"]),
        "segments shortened": edited(lambda manifest, path: manifest["tensors"]["replay"]["segments"].pop()),
        "segments doubled": edited(
            lambda manifest, path: manifest["tensors"]["replay"]["segments"].append(
                manifest["tensors"]["replay"]["segments"][0]
            )
        ),
        "segment no segment": table("replay", "segments", ["algorithm.safetensors"]),
        "size": listed("algorithm.safetensors", "bytes", 7),
        "size as text": listed("algorithm.safetensors", "bytes", "7"),
        "hash": listed("algorithm.safetensors", "sha256", "0" * 64),
        "hash in capitals": listed("algorithm.safetensors", "sha256", "A" * 64),
        "state a list": skeleton(lambda state: []),
        "state a number": skeleton(lambda state: {"algorithm": state["algorithm"]} | {"replay": 3}),
        "state without a tensor": skeleton(lambda state: {**state, "algorithm": {"map": {}}}),
        "state with an unknown tag": skeleton(lambda state: {**state, "algorithm": {"eval": "1+1"}}),
        "state with two tags": skeleton(lambda state: {**state, "algorithm": {"map": {}, "tuple": []}}),
        "state with another tensor": skeleton(lambda state: {**state, "counters": {"tensor": "weight"}}),
        "state not JSON": relisted("state.json", b"{'a': __import__('os')}"),
        "state too deep": relisted("state.json", b'{"algorithm":' + b"[" * 100_000),
        "the older one's files": lambda path, dice: rewrite(
            path / "algorithm.safetensors",
            (path.parent / "step-000000000001" / "algorithm.safetensors").read_bytes(),
        ),
        "a file in its place": lambda path, dice: (shutil.rmtree(path), path.write_bytes(b"x")),
        "a link in its place": lambda path, dice: (
            shutil.move(path, path.parent / "moved"),
            path.symlink_to(path.parent / "moved"),
        ),
    }
    return cases


CASES = [(f"flip {index}", flip) for index in range(FLIPS)]
CASES += [(f"cut {index}", cut) for index in range(CUTS)]
CASES += list(by_hand().items())


def test_there_are_two_hundred():
    assert len(CASES) >= 200


@pytest.mark.parametrize(("name", "spoil"), CASES, ids=[name for name, _ in CASES])
def test_a_spoilt_checkpoint_is_refused(pristine, tmp_path, name, spoil):
    folder = tmp_path / "checkpoints"
    shutil.copytree(pristine, folder)
    path = folder / "step-000000000002"
    spoil(path, random.Random(name))
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(path)
    message = str(error.value)
    assert error.value.exit_code == 3
    assert "\n" not in message
    assert message.startswith(f"checkpoint {path} cannot be used: ")
    assert message.endswith(f"the newest valid one is {folder / 'step-000000000001'}")
    assert not (folder / "executed").exists()


def test_the_unspoilt_one_is_loaded(pristine):
    state = checkpoint.load(pristine / "step-000000000002")
    assert same(state["replay"], torch.arange(500, dtype=torch.int32) * 2)
    assert contents.fault(pristine / "step-000000000002") is None


def test_no_module_is_imported_from_the_folder(pristine, tmp_path):
    shutil.copytree(pristine, tmp_path / "checkpoints")
    path = tmp_path / "checkpoints" / "step-000000000002"
    (path / "json.py").write_text("raise SystemExit")
    before = set(sys.modules)
    with pytest.raises(CheckpointError):
        checkpoint.load(path)
    assert not {name for name in set(sys.modules) - before if str(path) in str(sys.modules[name])}
