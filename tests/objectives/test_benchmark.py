"""The benchmark of advantages runs and answers what it promises; its figures are for a quiet machine."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "gae.py"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_quick_run_has_every_figure():
    spec = importlib.util.spec_from_file_location("gae_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = module.run(quick=True)
    estimators = figures["estimators 8 x 8"]
    assert {"graph_gae_over_torchrl_without_vmap", "loop_over_graph_gae"} <= estimators.keys()
    assert estimators["largest_difference_to_torchrl"] < 1e-5
    assert all(value > 0 for part in figures.values() for name, value in part.items() if name.endswith("_ms"))
