"""Compare the policy of a run with baselines on the same instances, one setting after another.

    python -m benchmarks.paired RUN --over graphs=line100,ring60 --set arrival_rate=0.4 --set load=null \
        --baselines maxweight,local-greedy --episodes 16

Every line has the mean of a metric for the policy and for each baseline, and the difference between policy
and baseline over the same instances, with its 95 % interval. Below zero, the policy has less.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.statistics import paired_difference
from edgewise.experiments.evaluate import evaluate_run


def main() -> None:
    """Parse the arguments and print a line for each setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--over", required=True, metavar="FIELD=A,B", help="a field of the environment")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="other fields")
    parser.add_argument("--baselines", required=True, help="names, separated by commas")
    parser.add_argument("--metric", default="backlog")
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--checkpoint", default="latest", choices=["best", "latest"])
    options = parser.parse_args()
    field, _, names = options.over.partition("=")
    fixed: dict[str, Any] = {
        key: yaml.safe_load(value) for key, _, value in (each.partition("=") for each in options.set)
    }
    for name in names.split(","):
        policy, *others = evaluate_run(
            options.run,
            EvaluationRequest(
                settings={**fixed, field: [name]},
                episodes=options.episodes,
                seed=options.seed,
                checkpoint=options.checkpoint,
                baselines=tuple(options.baselines.split(",")),
            ),
        )
        ours = policy.metrics[options.metric]
        parts = [f"{Path(name).stem}: policy {np.mean(ours):.4g}"]
        for other in others:
            theirs = other.metrics[options.metric]
            gap = paired_difference(ours, theirs)
            parts.append(
                f"{other.policy} {np.mean(theirs):.4g} (ratio {np.mean(ours) / np.mean(theirs):.3f}, "
                f"{gap.text('+.3g')})"
            )
        print("; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
