"""Which episodes are recorded: long enough to show something, and a failure where there is one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.evaluation.instances import Instances
from edgewise.evaluation.instructive import candidates, choose_episodes
from edgewise.plugins import environment

EPISODES = st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=9)


@given(EPISODES, st.integers(1, 9))
def test_the_first_is_a_long_success_and_the_second_a_failure(episodes, count):
    lengths, success = np.array(episodes, dtype=float).T
    chosen = choose_episodes(lengths, success, count=count)
    assert len(chosen) == len(set(chosen)) == min(count, len(lengths))
    solved = lengths[success == 1]
    if len(solved):
        assert success[chosen[0]] == 1
        assert lengths[chosen[0]] >= np.median(solved)
        assert (solved <= lengths[chosen[0]]).mean() >= 0.75
        assert (solved < lengths[chosen[0]]).mean() <= 0.75
    if len(solved) and len(solved) < len(lengths) and count > 1:
        assert success[chosen[1]] == 0
        assert lengths[chosen[1]] == max(lengths[success == 0])


def test_without_success_or_failure_long_episodes_follow():
    assert choose_episodes([1, 1, 1, 7, 3], None, count=3) == [4, 3, 0]
    assert choose_episodes([2, 9, 4], np.ones(3), count=2) == [1, 2]
    assert choose_episodes([40, 40], np.zeros(2), count=1) == [0]
    assert choose_episodes([3, 2], np.array([np.nan, 1.0]), count=1) == [0]


def test_more_are_recorded_than_kept_as_far_as_memory_allows():
    few = {"episodes": 64, "bytes_per_step": 100, "steps": 100}
    assert candidates(0, **few) == 0
    assert candidates(1, **few) == 16
    assert candidates(12, **few) == 24
    assert candidates(70, **few) == 64
    assert candidates(2, **{**few, "episodes": 3}) == 3
    assert candidates(2, **{**few, "bytes_per_step": 10**9}) == 2


@pytest.mark.parametrize("record", [0, 1, 2])
def test_instances_keep_the_episodes_that_are_worth_watching(record):
    entry = environment("graphwalk")
    config = entry.load("config")(num_nodes=(4, 12))
    instances = Instances.make(entry, config, episodes=16, seed=3, settings={})
    found = instances(instances.baselines(("shortest_path",))["shortest_path"], record=record)
    assert len(found.recordings) == len(found.recorded_steps) == record
    for states, steps in zip(found.recordings, found.recorded_steps, strict=True):
        assert len(states) - 1 == len(steps) > np.median(found.lengths)
        assert int(states["shortest"][0]) == len(steps)
