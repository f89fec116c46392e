"""The record of the files of a run: damage is noticed, and neither a kill nor growth is taken for damage."""

import json

import pytest

from edgewise.runs import digests as run_digests
from edgewise.runs import durable
from edgewise.runs.digests import FILE, GrowingDigest, damaged_files


@pytest.fixture
def run(tmp_path):
    (tmp_path / "evaluations").mkdir()
    for name in ("versions.json", "config.json"):
        (tmp_path / name).write_bytes(b'{"seed": 1}')
        run_digests.record(tmp_path, name, b'{"seed": 1}')
    return tmp_path


def test_a_new_run_is_whole(run):
    assert list(damaged_files(run)) == []


@pytest.mark.parametrize("content", [b'{"seed": 2}', b"", b'{"seed": 1} '])
def test_every_change_is_noticed(run, content):
    (run / "config.json").write_bytes(content)
    ((name, fault),) = damaged_files(run)
    assert name == "config.json"
    assert "SHA-256" in fault
    assert list(damaged_files(run, "versions.json")) == []


def test_a_file_that_is_written_again_is_whole(run):
    durable.replace_whole(run / "config.json", b'{"seed": 3}')
    assert list(damaged_files(run)) == []


def test_a_file_whose_replacement_was_killed_is_whole(run):
    """The record is written first, so the file may still have its earlier content."""
    run_digests.record(run, "config.json", b'{"seed": 4}')
    assert list(damaged_files(run)) == []


def test_a_new_file_that_is_not_recorded_yet_is_whole(run):
    (run / "evaluations" / "1.json").write_text("{}")
    assert list(damaged_files(run)) == []


def test_missing_files_are_noticed_and_many_are_counted(run):
    (run / "replays").mkdir()
    for name in ("evaluations/1.json", *(f"replays/{number}.json" for number in range(5))):
        run_digests.replace(run / name, b"{}")
        (run / name).unlink()
    assert list(damaged_files(run)) == [
        ("evaluations/1.json", "is missing"),
        ("replays", "has lost 5 files, such as replays/0.json"),
    ]


def test_other_files_are_not_recorded(run):
    run_digests.replace(run / "report.html", b"page")
    (run / "checkpoints").mkdir()
    run_digests.replace(run / "checkpoints" / "state.json", b"{}")
    recorded = {json.loads(line)["file"] for line in (run / FILE).read_text().splitlines()}
    assert recorded == {"config.json", "versions.json"}


class TestLogs:
    @pytest.fixture
    def log(self, run):
        (run / "metrics.csv").write_text("a\n1\n")
        digest = GrowingDigest(run / "metrics.csv")
        digest.record()
        return digest

    def append(self, run, text):
        with (run / "metrics.csv").open("a") as file:
            file.write(text)

    def test_it_may_grow(self, run, log):
        self.append(run, "2\n")
        assert list(damaged_files(run)) == []
        log.record()
        self.append(run, "3\n")
        assert list(damaged_files(run)) == []
        assert len((run / FILE).read_text().splitlines()) == 4

    @pytest.mark.parametrize("content", ["a\n7\n2\n3\n", "a\n1\n", "", "a\n1\n9\n"])
    def test_what_was_recorded_must_stay(self, run, log, content):
        self.append(run, "2\n")
        log.record()
        (run / "metrics.csv").write_text(content)
        assert [name for name, _ in damaged_files(run)] == ["metrics.csv"]

    def test_a_rewritten_log_is_whole_before_and_after(self, run, log):
        self.append(run, "2\n")
        new = b"a,b\n1,\n2,\n"
        log.replace(new)
        assert list(damaged_files(run)) == [], "killed before the replacement"
        (run / "metrics.csv").write_bytes(new)
        assert list(damaged_files(run)) == []
        (run / "metrics.csv").write_bytes(new.replace(b"2", b"3"))
        assert list(damaged_files(run)) != []

    def test_the_running_digest_is_that_of_the_file(self, run, log):
        self.append(run, "2\n3\n")
        assert log.sha256() == GrowingDigest(run / "metrics.csv").sha256()
        (run / "metrics.csv").write_text("a\n")
        assert log.sha256() == GrowingDigest(run / "metrics.csv").sha256()

    def test_a_log_elsewhere_is_not_recorded(self, tmp_path_factory):
        path = tmp_path_factory.mktemp("alone") / "metrics.csv"
        GrowingDigest(path).record()
        assert not (path.parent / FILE).exists()


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"file": "../x", "bytes": 1, "sha256": ""}', "NaN", "[" * 9999]
)
def test_damaged_lines_are_left_out_and_found(run, line):
    with (run / FILE).open("a") as file:
        file.write(line + "\n")
    assert list(damaged_files(run)) == []
    with pytest.raises(ValueError, match="line 3 is not a digest"):
        run_digests.check_record(run / FILE)


def test_an_incomplete_line_is_ended_before_the_next(run):
    with (run / FILE).open("a") as file:
        file.write('{"file": "con')
    run_digests.record(run, "config.json", b"{}")
    assert len((run / FILE).read_text().splitlines()) == 4
    assert json.loads((run / FILE).read_text().splitlines()[-1])["file"] == "config.json"


def test_without_a_record_nothing_is_noticed(run):
    (run / FILE).unlink()
    (run / "config.json").write_text("{}")
    assert list(damaged_files(run)) == []
