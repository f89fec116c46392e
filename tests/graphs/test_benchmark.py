"""The bridge's benchmark runs and gives figures that a file can hold."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "bridge.py"


@pytest.fixture(scope="module")
def figures():
    described = importlib.util.spec_from_file_location("bridge_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module.run(quick=True)


def test_every_source_of_edges_is_measured(figures):
    assert set(figures) == {
        "explicit",
        "topology",
        "radius",
        "nearest, all pairs",
        "nearest, k slots",
        "batching",
    }
    assert all(
        math.isfinite(value) and value > 0 for numbers in figures.values() for value in numbers.values()
    )


def test_the_figures_are_plain_json(figures):
    assert json.loads(json.dumps(figures)) == figures
    assert figures["batching"]["from_data_list_over_bridge"] == pytest.approx(
        figures["batching"]["from_data_list_ms"] / figures["batching"]["bridge_ms"]
    )
