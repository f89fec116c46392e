"""Shares of processes and workers that are not equal are refused with numbers that would do."""

import pytest

from edgewise.config.errors import ConfigError
from edgewise.scale.division import _refuse_remainder


@pytest.mark.parametrize(
    ("total", "count", "suited"), [(7, 3, "use 6 or 9,"), (2, 3, "use 3,"), (32, 5, "use 30 or 35,")]
)
def test_the_nearest_numbers_that_can_be_shared(total, count, suited):
    with pytest.raises(ConfigError, match=f"got {total}, which {count} processes cannot") as refused:
        _refuse_remainder("training.num_envs", total, count)
    assert suited in refused.value.hint


@pytest.mark.parametrize(("total", "count"), [(6, 3), (3, 3), (0, 3), (8, 1)])
def test_equal_shares_are_accepted(total, count):
    _refuse_remainder("training.num_envs", total, count)
