"""The benchmark of proofs runs and answers what it promises; its figures are for a quiet machine."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[3] / "benchmarks" / "reasoning.py"


@pytest.fixture
def benchmark():
    spec = importlib.util.spec_from_file_location("reasoning_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_quick_run_has_every_figure(benchmark, monkeypatch):
    asked = []
    monkeypatch.setattr(benchmark, "STEPS", 2)
    monkeypatch.setattr(benchmark, "parallel", lambda fields, **how: asked.append(how) or 1.0)
    figures = benchmark.run(quick=True, folder=None)
    names = {"state, 1", "state, 64", "state, 1024", "padded, 1024", "parallel, 4"}
    scaling = figures.pop("random chains, countries_s3")
    assert set(scaling) == {"100 rules", "100 rules, MB", "10000 rules", "10000 rules, MB", "ratio"}
    assert all(value > 0 for value in scaling.values())
    assert {name: set(found) for name, found in figures.items()} == {"countries_s3": names}
    assert all(value > 0 for value in figures["countries_s3"].values())
    assert asked == [{"workers": 4, "steps": 20}]


def test_a_rate_is_steps_over_time_without_the_first_two_calls(benchmark):
    now, calls = [0.0], []

    def plays():
        calls.append(now[0])
        now[0] += 0.5
        return 100

    assert benchmark.rate(plays, seconds=2.0, clock=lambda: now[0]) == 200.0
    assert calls == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
