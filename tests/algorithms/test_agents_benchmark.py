"""The benchmark of agents runs, and names every agent beside its published figure."""

from benchmarks.agents import PUBLISHED, run
from tests.algorithms.sea import AGENTS


def test_it_measures_every_agent_with_both_encoders():
    figures = run(quick=True)
    assert set(PUBLISHED) == set(AGENTS)
    assert set(figures) == {"published at 64", "flat, 64", "graph, 64", "20 nodes, 64"}
    for kind in ("flat, 64", "graph, 64"):
        assert {f"{name}_ms" for name in AGENTS} <= set(figures[kind])
        assert all(value > 0 for value in figures[kind].values())
    on_graphs = figures["20 nodes, 64"]
    assert on_graphs["dqn on 20 nodes_bytes"] > on_graphs["dqn on agents.ego_bytes"] > 0
