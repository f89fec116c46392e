"""Queueing, one hop: choose in every slot which links of a conflict graph send, so that few packets wait.

Arrivals are 0.8 of what a graph can carry. Trained on lines, stars and cliques of five links; 2n and 10n are
such graphs of 10 and 50, without lines at 10n, whose independent sets are too many to list. `family` are
rings, trees, grids and preferential attachment. No optimum is known; the reference is the best column.
"""

from edgewise.benchmark.task import Split, Task

TEST = {"load": 0.8, "initial_queue": 0, "max_steps": 200}

TASK = Task(
    name="queueing-one-hop",
    card=__doc__,
    environment="queueing",
    measure="backlog",
    settings={
        "graphs": ["line5", "star5", "clique5"],
        "load": [0.6, 0.95],
        "initial_queue": 4,
        "max_steps": 200,
        "reward_scale": "nodes",
        "node_priority": "none",
        "prior": "degree-weight",
    },
    splits=(
        Split("n", TEST, count=64),
        Split("2n", {**TEST, "graphs": ["line10", "star10", "clique10"]}, count=64),
        Split("10n", {**TEST, "graphs": ["star50", "clique50", "bipartite25x25"]}, count=16),
        Split("family", {**TEST, "graphs": ["ring6", "tree7", "grid2x3", "barabasi6*4"]}, count=64),
    ),
    training={"model": {"sets": "whole", "prior": 2.0}},
    smoke=8_192,
    group="queueing",
)
