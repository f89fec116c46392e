"""metrics.csv: exact numbers, columns that come later, and rows that a resumed run writes again."""

import csv
import json
import math
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.training.logging.event_log import EventLog
from edgewise.training.logging.metrics_log import MetricsLog

names = st.sampled_from(["frames", "episode/return", "stage", "learn/loss", "a,b", 'quo"te', "new\nline"])
values = st.floats(allow_nan=False) | st.integers() | st.text(st.characters(codec="utf-8"), max_size=5)
rows = st.lists(st.dictionaries(names, values, min_size=1, max_size=4), min_size=1, max_size=8)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@settings(max_examples=40)
@given(rows, st.data())
def test_a_resumed_log_equals_one_that_never_stopped(tmp_path_factory, content, data):
    folder = tmp_path_factory.mktemp("log")
    whole, cut = MetricsLog(folder / "whole.csv"), MetricsLog(folder / "cut.csv")
    for row in content:
        whole.append(row)
    stop = data.draw(st.integers(0, len(content)))
    crash = data.draw(st.integers(stop, len(content)))
    for row in content[:stop]:
        cut.append(row)
    state = json.loads(json.dumps(cut.state_dict()))
    for row in content[stop:crash]:
        cut.append(row)
    if crash > stop and data.draw(st.booleans()):
        torn = (folder / "cut.csv").read_bytes()[:-1]
        (folder / "cut.csv").write_bytes(torn)
    again = MetricsLog(folder / "cut.csv")
    again.load_state_dict(state)
    for row in content[stop:]:
        again.append(row)
    assert (folder / "cut.csv").read_bytes() == (folder / "whole.csv").read_bytes()


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_read_back_exactly(tmp_path_factory, number):
    path = tmp_path_factory.mktemp("log") / "metrics.csv"
    MetricsLog(path).append({"x": number})
    assert struct.pack("<d", float(read(path)[0]["x"])) == struct.pack("<d", number)


def test_later_columns_leave_earlier_cells_empty(tmp_path):
    log = MetricsLog(tmp_path / "metrics.csv")
    log.append({"frames": 1, "loss": 0.5})
    log.append({"frames": 2, "return": math.pi})
    log.append({"frames": 3})
    assert (tmp_path / "metrics.csv").read_text() == "frames,loss,return\n1,0.5,\n2,,3.141592653589793\n3,,\n"
    assert not list(tmp_path.glob(".*"))


def test_a_log_shorter_than_its_checkpoint_is_told(tmp_path, caplog):
    log = MetricsLog(tmp_path / "metrics.csv")
    log.append({"frames": 1})
    log.load_state_dict({"rows": 5, "columns": ["frames"]})
    assert "has 1 rows, but the checkpoint has 5" in caplog.text


def test_a_log_that_is_no_text_is_told_and_does_not_stop_a_run(tmp_path, caplog):
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"\x86\x00\xff\n\xfe")
    MetricsLog(path).load_state_dict({"rows": 5, "columns": ["frames"]})
    assert "the checkpoint has 5" in caplog.text


def test_events_are_lines_and_a_torn_one_is_dropped(tmp_path):
    path = tmp_path / "events.jsonl"
    first = EventLog(path)
    first.write("start", {"frames": 0})
    with open(path, "ab") as file:
        file.write(b'{"time": "20')
    second = EventLog(path)
    second.write("resume", {"frames": 0, "stage": "ein Stück"})
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", "resume"]
    assert events[1]["stage"] == "ein Stück"
