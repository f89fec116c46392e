"""metrics.csv in, columns and thinned curves out, against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.report import metrics_table
from edgewise.report.metrics_table import MetricsTable, read_metrics, thin


def written(folder, text):
    path = folder / "metrics.csv"
    path.write_text(text)
    return path


def test_columns_hold_numbers_words_and_gaps(tmp_path):
    table = read_metrics(
        written(tmp_path, 'frames,stage,loss,"a, b"\n10,small,,1\n20,large,0.5,nan\n30,large,2,inf\n')
    )
    assert table.rows == 3
    assert table.clock == "frames"
    assert table.texts == {"stage": ["small", "large", "large"]}
    np.testing.assert_array_equal(table.columns["loss"], [math.nan, 0.5, 2])
    np.testing.assert_array_equal(table.columns["a, b"], [1, math.nan, math.inf])
    assert table.not_finite == ("a, b",), "an empty cell is no number, and no fault"


def test_a_row_cut_short_is_left_out(tmp_path):
    table = read_metrics(written(tmp_path, "frames,loss\n1,0.5\n2,0.25\n3"))
    assert table.x.tolist() == [1, 2]


@pytest.mark.parametrize("text", ["", "frames,loss\n", "\n\n"])
def test_an_empty_file_is_an_empty_table(tmp_path, text):
    assert read_metrics(written(tmp_path, text)).rows == 0


def test_without_a_clock_rows_are_counted():
    assert MetricsTable({"loss": np.array([3.0, 2.0])}, rows=2).x.tolist() == [0, 1]
    assert MetricsTable().x.tolist() == []


def test_of_a_long_file_every_so_many_rows_are_read_and_the_last_one_too(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics_table, "MAX_ROWS", 100)
    text = "frames,loss\n" + "".join(f"{row},{row % 7}\n" for row in range(1, 1001))
    table = read_metrics(written(tmp_path, text))
    assert table.rows == 1000
    assert table.x.tolist() == list(range(10, 1001, 10))


@given(st.lists(st.one_of(st.floats(-9, 9), st.just(math.nan)), max_size=60), st.integers(1, 20))
def test_thinning_keeps_means_and_ranges(values, points):
    x, y = np.arange(len(values), dtype=float), np.array(values, dtype=float)
    known = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(b)]
    curve = thin(x, y, points=points)
    assert len(curve.x) == min(points, len(known))
    if len(known) <= points:
        assert curve.y.tolist() == [value for _, value in known]
        return
    starts = [len(known) * part // points for part in range(points)] + [len(known)]
    for part in range(points):
        rows = known[starts[part] : starts[part + 1]]
        values = [value for _, value in rows]
        assert curve.x[part] == pytest.approx(sum(a for a, _ in rows) / len(rows))
        assert curve.y[part] == pytest.approx(sum(values) / len(values))
        assert (curve.low[part], curve.high[part]) == (min(values), max(values))
