"""Draw one episode of a task: of the first trained method, or of the strongest rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgewise.benchmark.columns import Field, rule_names
from edgewise.envs.policy import Policy
from edgewise.evaluation.replays.check import check
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.replays import replay_function
from edgewise.report.pictures.write import svg
from edgewise.runs import durable

WIDTH = 460


def draw(field: Field, run: Path | None, target: Path) -> None:
    """Write the end of an episode at size n as SVG, unless the file exists.

    Args:
        field: the instances.
        run: folder of a trained run; None for the strongest rule.
        target: the file.
    """
    if target.is_file():
        return
    batch = field.batches[field.task.splits[0].name][0]
    policy: Policy
    if run is None:
        names = rule_names(field)[1:]
        means = {
            n: np.mean(batch(p).measures()[field.task.measure]) for n, p in batch.baselines(names).items()
        }
        best = max(names, key=lambda name: field.task.sign * float(means[name]))
        policy = batch.baselines((best,))[best]
    else:
        policy = load_trained(run, which="latest").policy
    found = batch(policy, record=1)
    shown = replay_function(policy, batch.env, entry=field.task.entry)
    replay = check(shown(found.recordings[0], found.recorded_steps[0]))
    target.parent.mkdir(exist_ok=True)
    durable.replace_whole(target, svg(replay, width=WIDTH).encode())
