"""The examples learn to a threshold in minutes."""

import pytest

import edgewise as ew

RUNS = {
    "tsp": ("tsp/tsp.py", {"num_cities": 10}, "nearest", "tour"),
    "cover": ("team/cover.py", {"num_agents": 3}, "nearest", "distance"),
}


@pytest.mark.learning
@pytest.mark.parametrize("name", RUNS)
def test_it_beats_a_simple_baseline(examples, tmp_path, name):
    file, size, baseline, measure = RUNS[name]
    run = ew.train(
        str(examples / file),
        folder=tmp_path / "run",
        progress=False,
        training={"total_frames": 60_000},
        algorithm={"gamma": 0.95 if name == "cover" else 1.0, "learning_rate": 1e-3},
        model={"encoder": {"layers": 2}},
        evaluation={"every": 20_000},
        **size,
    )
    found = run.evaluate(episodes=200, baselines=[baseline])
    (beside,) = found.others
    assert found.metrics[measure].mean() < beside.metrics[measure].mean()
