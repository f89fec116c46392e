"""Instance files: read, written back, and refused with file, field and remedy where they cannot be used."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
from tests.systems.multihop.networks.written import as_content, write_instance

from edgewise.config.errors import DataError
from edgewise.systems.multihop.config import SHIPPED, shipped_names
from edgewise.systems.multihop.networks.generate import barabasi_network
from edgewise.systems.multihop.networks.instance import (
    IGNORED,
    Instance,
    Link,
    TrafficClass,
    parse_instance,
    read_instance,
)

GOOD = {
    "nodes": 3,
    "link_info": [{"start": 0, "end": 1, "rate": 2.0}, {"start": 1, "end": 2, "rate": 1.0, "power": 3.0}],
    "class_info": {"2": {"0": 0.5, "1": 0.25}},
    "link_distribution": "fixed",
    "arrival_distribution": "poisson",
}
FLOWS = {**GOOD, "class_info": [{"source": 0, "destination": 2, "rate": 0.5}]}


def without(content, *path):
    changed = deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def changed(content, value, *path):
    copy = deepcopy(content)
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


TWICE = [*GOOD["link_info"], GOOD["link_info"][0]]

MALFORMED = {
    "not an object": ([1, 2], "expected an object", "named fields"),
    "nodes missing": (without(GOOD, "nodes"), "nodes: missing", "add nodes"),
    "nodes not whole": (changed(GOOD, 2.5, "nodes"), "nodes: expected a whole number", "how many"),
    "nodes zero": (changed(GOOD, 0, "nodes"), "nodes: expected a whole number from 1, got 0", "how many"),
    "nodes true": (
        changed(GOOD, True, "nodes"),
        "nodes: expected a whole number from 1, got true",
        "how many",
    ),
    "links missing": (without(GOOD, "link_info"), "link_info: missing", "add link_info"),
    "links empty": (changed(GOOD, [], "link_info"), "link_info: expected a filled list", "start, end, rate"),
    "links no list": (
        changed(GOOD, {"0": 1}, "link_info"),
        "link_info: expected a filled list",
        "start, end",
    ),
    "link no object": (changed(GOOD, 7, "link_info", 0), "link_info[0]: expected an object, got 7", "named"),
    "start missing": (without(GOOD, "link_info", 0, "start"), "link_info[0].start: missing", "add start"),
    "end missing": (without(GOOD, "link_info", 1, "end"), "link_info[1].end: missing", "add end"),
    "end beyond": (
        changed(GOOD, 3, "link_info", 1, "end"),
        "link_info[1].end: expected a node from 0 to 2",
        "raise",
    ),
    "start negative": (
        changed(GOOD, -1, "link_info", 0, "start"),
        "link_info[0].start: expected a node",
        "raise",
    ),
    "end as text": (
        changed(GOOD, "1", "link_info", 0, "end"),
        'link_info[0].end: expected a node from 0 to 2, got "1"',
        "name",
    ),
    "link to itself": (
        changed(GOOD, 0, "link_info", 0, "end"),
        "link_info[0].end: node 0 is also the start",
        "leave",
    ),
    "link twice": (
        changed(GOOD, TWICE, "link_info"),
        "link_info[2].start: link 0→1 was given before",
        "once",
    ),
    "rate missing": (without(GOOD, "link_info", 0, "rate"), "link_info[0].rate: missing", "add rate"),
    "rate negative": (
        changed(GOOD, -1.0, "link_info", 0, "rate"),
        "link_info[0].rate: expected a number above zero",
        "packets",
    ),
    "rate zero": (
        changed(GOOD, 0, "link_info", 0, "rate"),
        "link_info[0].rate: expected a number above zero",
        "leave",
    ),
    "rate as text": (
        changed(GOOD, "fast", "link_info", 0, "rate"),
        'link_info[0].rate: expected a finite number, got "fast"',
        "packets",
    ),
    "rate split": (
        changed(GOOD, 1.5, "link_info", 0, "rate"),
        "link_info[0].rate: 1.5 packets a slot under a fixed",
        "poisson",
    ),
    "power negative": (
        changed(GOOD, -2, "link_info", 1, "power"),
        "link_info[1].power: expected a number from",
        "leave",
    ),
    "unknown link field": (
        changed(GOOD, 1, "link_info", 0, "colour"),
        "link_info[0].colour: unknown",
        "power",
    ),
    "classes missing": (without(GOOD, "class_info"), "class_info: missing", "add class_info"),
    "classes empty": (changed(GOOD, {}, "class_info"), "class_info: expected a filled object", "destination"),
    "class without source": (
        changed(GOOD, {}, "class_info", "2"),
        "class_info.2: expected a filled object",
        "source",
    ),
    "destination unknown": (
        changed(GOOD, {"0": 1.0}, "class_info", "9"),
        "class_info.9: expected a node",
        "raise",
    ),
    "destination no number": (
        changed(GOOD, {"0": 1.0}, "class_info", "b"),
        "class_info.b: expected a node",
        "name",
    ),
    "source unknown": (
        changed(GOOD, 1.0, "class_info", "2", "5"),
        "class_info.2.5: expected a node",
        "raise",
    ),
    "source is destination": (
        changed(GOOD, 1.0, "class_info", "2", "2"),
        "class_info.2.2: a class has its",
        "leave",
    ),
    "traffic negative": (
        changed(GOOD, -0.5, "class_info", "2", "0"),
        "class_info.2.0: expected a number from zero",
        "leave",
    ),
    "no way": (
        changed(GOOD, {"2": 0.5}, "class_info", "0"),
        "class_info.0: no path over the links from source 2",
        "link_info",
    ),
    "link law": (
        changed(GOOD, "uniform", "link_distribution"),
        'link_distribution: got "uniform"',
        "fixed or poisson",
    ),
    "arrival law": (
        changed(GOOD, 3, "arrival_distribution"),
        "arrival_distribution: got 3",
        "poisson or fixed",
    ),
    "arrival law missing": (without(GOOD, "arrival_distribution"), "arrival_distribution: missing", "add"),
    "arrivals split": (
        changed(GOOD, "fixed", "arrival_distribution"),
        "class_info.2.0: 0.5 packets a slot",
        "poisson",
    ),
    "unknown field": (changed(GOOD, 1, "link_infos"), "link_infos: unknown field", "known fields are nodes"),
    "flow missing a field": (
        without(FLOWS, "class_info", 0, "rate"),
        "class_info[0].rate: missing",
        "add rate",
    ),
    "flow to itself": (
        changed(FLOWS, 0, "class_info", 0, "destination"),
        "class_info[0].destination: node 0",
        "leave",
    ),
    "flow without way": (
        changed(FLOWS, {"source": 2, "destination": 0, "rate": 1.0}, "class_info", 0),
        "class_info[0]: no path over the links from source 2 to destination 0",
        "link_info",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_cannot_be_used_is_named(case, tmp_path):
    content, complaint, remedy = MALFORMED[case]
    file = tmp_path / "net.json"
    file.write_text(json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_instance(file)
    assert caught.value.message.startswith(f"{file}: {complaint}")
    assert remedy in caught.value.hint
    assert caught.value.exit_code == 2


RAW = {
    "not JSON": (b"{nodes: 3}", "not JSON at line 1, column 2"),
    "cut off": (b'{"nodes": 3, "link_info": [', "not JSON at line 1"),
    "a key twice": (b'{"nodes": 3, "nodes": 4}', "nodes: given twice"),
    "no number": (b'{"nodes": NaN}', "not JSON: NaN is not a number of JSON"),
    "empty": (b"", "not JSON at line 1, column 1"),
    "deep": (b"[" * 100_000, "not JSON: it is nested too deeply"),
    "a long number": (
        b'{"nodes": ' + b"9" * 5000 + b"}",
        "not JSON: a number has 5000 digits, more than 300",
    ),
}


@pytest.mark.parametrize("case", RAW)
def test_files_that_are_no_json_are_named(case, tmp_path):
    raw, complaint = RAW[case]
    file = tmp_path / "net.json"
    file.write_bytes(raw)
    with pytest.raises(DataError) as caught:
        read_instance(file)
    assert caught.value.message.startswith(f"{file}: {complaint}")
    assert caught.value.hint


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    file = tmp_path / "net.json"
    file.write_bytes(b"\n\xff\xfe\x00")
    with pytest.raises(DataError, match=r"net\.json:2: byte 0xff is not UTF-8"):
        read_instance(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.json does not exist"):
        read_instance(tmp_path / "nowhere.json")


def test_an_instance_is_read_field_by_field():
    got = parse_instance(GOOD, name="mine")
    assert got == Instance(
        "mine",
        3,
        (Link(0, 1, 2.0), Link(1, 2, 1.0, 3.0)),
        (TrafficClass(2, {0: 0.5, 1: 0.25}),),
    )
    assert got.load == 0.75
    assert parse_instance(FLOWS, name="mine").version == 1


@pytest.mark.parametrize("content", [GOOD, FLOWS])
def test_what_is_written_is_what_was_read(content, tmp_path):
    instance = parse_instance(content, name=str(tmp_path / "net.json"))
    file = write_instance(instance, tmp_path / "net.json")
    assert json.loads(file.read_text()) == content
    assert read_instance(file) == instance


def simulated(file):
    """The fields of a file that the simulator reads."""
    return {key: value for key, value in json.loads(file.read_text()).items() if key not in IGNORED}


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_instances_are_sound(name):
    instance = read_instance(SHIPPED / f"{name}.json")
    assert as_content(instance) == simulated(SHIPPED / f"{name}.json")


def test_drawn_networks_can_be_written_and_read(tmp_path):
    drawn = barabasi_network(12, seed=3)
    again = read_instance(write_instance(drawn, tmp_path / "drawn.json"))
    assert as_content(again) == as_content(drawn)


NETWORKS = Path(__file__).parents[5] / "shared" / "data" / "networks"


@pytest.mark.thorough
@pytest.mark.skipif(not NETWORKS.is_dir(), reason="the published networks are not beside this folder")
def test_stored_instances_come_back_unchanged():
    files = sorted(NETWORKS.glob("*.json"))
    assert len(files) > 20
    for file in files:
        content = as_content(read_instance(file))
        assert repr(content) == repr(simulated(file)), file.name
