"""Queueing, re-entrant: give the queues of a network the potentials by which its servers choose.

Jobs visit every server several times, and one decision holds for an episode. n is the number of servers;
`family` are re-re-entrant lines. No optimum is known; the reference is the best column.
"""

from edgewise.benchmark.task import Split, Task

TEST = {"initial_jobs": 0.0, "max_steps": 50}

TASK = Task(
    name="queueing-reentrant",
    card=__doc__,
    environment="reentrant_potentials",
    measure="jobs",
    settings={
        "networks": ["reentrant3"],
        "initial_jobs": 1.5,
        "events_per_step": 100,
        "max_steps": 20,
    },
    splits=(
        Split("n", TEST, count=32),
        Split("2n", {**TEST, "networks": ["reentrant6"]}, count=32),
        Split("10n", {**TEST, "networks": ["reentrant30"]}, count=8),
        Split("family", {**TEST, "networks": ["re-reentrant3"]}, count=32),
    ),
    every=5_120,
    smoke=1_024,
    group="queueing",
)
