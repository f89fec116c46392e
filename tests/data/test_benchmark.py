"""The benchmark of the replay runs and answers what it promises; its figures are for a quiet machine."""

from benchmarks.replay import run


def test_the_quick_run_has_every_figure():
    (figures,) = run(quick=True).values()
    assert {
        "tree: sample",
        "tree: update",
        "running sum: sample",
        "prioritised replay: sample",
    } <= figures.keys()
    assert all(value > 0 for value in figures.values())
