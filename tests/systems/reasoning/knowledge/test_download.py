"""Downloads from a local home: what is not exactly the dataset leaves nothing behind."""

import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from edgewise.cli.main import main
from edgewise.config.errors import DataError
from edgewise.systems.reasoning.knowledge import download as module
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.systems.reasoning.knowledge.download import SOURCES, Source, download

FILES = {"train": b"a\tr\tb\r\nb\tr\tc\r\n", "valid": b"a\tr\tc\r\n", "test": b"c\tr\ta\r\n"}
LINES = {"train": 2, "valid": 1, "test": 1}
DIGESTS = {split: hashlib.sha256(content).hexdigest() for split, content in FILES.items()}


def archive(files, *, folder="KG"):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}.txt")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def home(tmp_path, content, *, lines=LINES, sha256=DIGESTS):
    path = tmp_path / "home.tar.gz"
    path.write_bytes(content)
    return Source(url=path.as_uri(), lines=lines, sha256=sha256)


def test_a_download_is_a_dataset_that_says_where_it_is_from(tmp_path):
    source = home(tmp_path, archive({**FILES, "readme": b"hello"}))
    folder = download("mine", tmp_path / "data" / "mine", source=source)
    assert {path.name for path in folder.iterdir()} == {"train.txt", "valid.txt", "test.txt", "source.json"}
    assert (folder / "train.txt").read_bytes() == FILES["train"]
    note = json.loads((folder / "source.json").read_text())
    assert note == {
        "url": source.url,
        "sha256": {f"{split}.txt": DIGESTS[split] for split in DIGESTS},
    }
    assert len(load_dataset(folder).train) == 2


def test_what_is_there_already_is_not_fetched(tmp_path):
    (tmp_path / "train.txt").write_text("mine")
    assert download("wn18rr", tmp_path, source=Source("file:///nothing", LINES, {})) == tmp_path
    assert (tmp_path / "train.txt").read_text() == "mine"


def test_of_two_files_of_one_name_the_one_nearer_the_top_is_taken(tmp_path):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for folder, extra in (("KG/deep/er", b"x\tr\ty\n"), ("KG", b""), ("KG/below", b"x\tr\ty\n")):
            for split, content in FILES.items():
                entry = tarfile.TarInfo(f"{folder}/{split}.txt")
                entry.size = len(content + extra)
                tar.addfile(entry, io.BytesIO(content + extra))
    folder = download("mine", tmp_path / "data", source=home(tmp_path, held.getvalue()))
    assert (folder / "test.txt").read_bytes() == FILES["test"]


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (b"not a tar", {}, "is no whole tar archive"),
        (archive(FILES)[:80], {}, "is no whole tar archive"),
        (archive({"train": FILES["train"]}), {}, r"holds no valid\.txt, test\.txt"),
        (archive(FILES), {"lines": {**LINES, "train": 3}}, r"train\.txt of .* has 2 lines instead of 3"),
        (archive(FILES), {"sha256": {"test": "0" * 64}}, r"test\.txt of .* has SHA-256 .* instead of 000"),
    ],
    ids=["no archive", "cut short", "files missing", "lines missing", "another file"],
)
def test_what_is_not_the_dataset_is_refused_and_nothing_is_left(tmp_path, content, changes, message):
    source = home(tmp_path, content, **changes)
    with pytest.raises(DataError, match=message):
        download("mine", tmp_path / "data", source=source)
    assert [path.name for path in tmp_path.iterdir()] == ["home.tar.gz"]


def test_a_link_in_an_archive_is_no_file(tmp_path):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        entry = tarfile.TarInfo("KG/train.txt")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(DataError, match=r"holds no train\.txt, valid\.txt, test\.txt"):
        download("mine", tmp_path / "data", source=home(tmp_path, held.getvalue()))


def test_a_home_that_does_not_answer_is_named(tmp_path):
    with pytest.raises(DataError, match=r"file:///nothing/there cannot be downloaded"):
        download("mine", tmp_path / "data", source=Source("file:///nothing/there", LINES, {}))
    assert not (tmp_path / "data").exists()


def test_an_unknown_name_is_refused_with_those_that_are_known(tmp_path):
    with pytest.raises(DataError, match="no public dataset is called wn19") as caught:
        download("wn19", tmp_path / "data")
    assert "fb15k-237" in caught.value.hint


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    with pytest.raises(DataError, match=r"exists and holds no train\.txt"):
        download("wn18rr", tmp_path, source=home(tmp_path, archive(FILES)))


def test_the_public_homes_are_described_whole():
    for source in SOURCES.values():
        assert source.url.startswith("https://")
        assert set(source.lines) == {"train", "valid", "test"}
        assert all(len(digest) == 64 for digest in source.sha256.values())
    assert SOURCES["wn18rr"].sha256.keys() == FILES.keys()


@pytest.fixture
def server():
    """A web server on this machine that gives one archive, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found = self.path == "/kg.tar.gz"
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(archive(FILES) if found else b"")

        def log_message(self, *arguments):
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


def test_the_verb_downloads_trains_and_saves(tmp_path, monkeypatch, capsys, server):
    monkeypatch.setitem(module.SOURCES, "mine", Source(f"{server}/kg.tar.gz", LINES, DIGESTS))
    folders = [str(tmp_path / "data"), "--download", "mine", "--out", str(tmp_path / "out")]
    command = ["reasoning", "kge", *folders]
    assert main([*command, "--dim", "2", "--epochs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entities"] == 3
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_a_page_that_is_not_there_ends_with_code_2(tmp_path, monkeypatch, capsys, server):
    monkeypatch.setitem(module.SOURCES, "mine", Source(f"{server}/gone", LINES, DIGESTS))
    assert main(["reasoning", "kge", str(tmp_path / "data"), "--download", "mine"]) == 2
    assert "cannot be downloaded: Not Found" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
