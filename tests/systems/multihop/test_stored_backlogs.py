"""`benchmarks.ties`: relative differences to stored backlogs, and files that have none."""

import json

import pytest
from benchmarks import ties

from edgewise.config.errors import ConfigError
from edgewise.systems.multihop.routers import Ties


def test_differences_are_summed_up_by_hand():
    text = ties.summary(Ties("highest", "lowest"), [0.04, -0.05, 0.10, -0.20])
    assert text == ("links highest, classes lowest: median -0.5%, sd 13.0%, within 5 % 2, within 15 % 3 of 4")


@pytest.mark.parametrize("content", ["{}", "[]", "not json", '{"baselines": {"SPBP": {"backlog": null}}}'])
def test_a_file_without_a_stored_backlog_is_named(content, tmp_path):
    file = tmp_path / "net.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"net\.json has no number at baselines\.SPBP\.backlog"):
        ties.stored_backlog(file)


def test_the_stored_backlog_is_read(tmp_path):
    file = tmp_path / "net.json"
    file.write_text(json.dumps({"baselines": {"SPBP": {"backlog": 27.5}, "SPTS": {"backlog": 1.0}}}))
    assert ties.stored_backlog(file) == 27.5
