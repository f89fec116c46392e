"""Compare the composed action with its halves: `python measure.py capacity.py`, or `../outbreak/outbreak.py`.

Trains PPO and SAC on three seeds with the whole action, with the choice at random and with the number fixed,
each for the same number of frames, and prints the returns of the last checkpoints on the same 400 instances
with paired differences.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import edgewise as ew
from edgewise.evaluation.paired import paired_rows

HALVES = {"capacity": ("link", "amount"), "outbreak": ("person", "dose")}
SMALL = {"model.encoder": {"hidden": 32, "heads": 2, "layers": 2}, "learning_rate": 0.001}
FRAMES = {"capacity": {"ppo": 60_000, "sac": 10_000}, "outbreak": {"ppo": 40_000, "sac": 10_000}}
SETTINGS = {
    "ppo": {"num_envs": 64, "rollout_length": 16},
    "sac": {
        "num_envs": 32,
        "rollout_length": 8,
        "learning_starts": 1_000,
        "minibatch_size": 128,
        "updates_per_transition": 1 / 16,
    },
}


def main(path, seeds):
    """Print a row for every algorithm, seed and half."""
    name = Path(path).stem
    folder = Path(tempfile.mkdtemp())
    for method, settings in SETTINGS.items():
        for seed in seeds:
            results = {}
            for fix in ("nothing", *HALVES[name]):
                run = ew.train(
                    path,
                    algorithm=method,
                    folder=folder / f"{method}-{seed}-{fix}",
                    seed=seed,
                    progress=False,
                    fix=fix,
                    total_frames=FRAMES[name][method],
                    **{"evaluation.every": None},
                    **settings,
                    **SMALL,
                )
                results[fix] = run.evaluate(episodes=400, checkpoint="latest", baselines="all")
            whole = results.pop("nothing")
            rules = ", ".join(f"{rule.policy} {rule.returns.mean():.3f}" for rule in whole.others)
            show(f"{name} {method} seed {seed}: whole {whole.returns.mean():.3f}; {rules}")
            for fix, half in results.items():
                row = next(row for row in paired_rows(whole, half) if row["measure"] == "return")
                low, high = row["difference_low"], row["difference_high"]
                shown = (
                    f"{half.returns.mean():.3f}, difference {row['difference']:.3f} [{low:.3f}, {high:.3f}]"
                )
                show(f"  {fix} fixed: {shown}")
    shutil.rmtree(folder)


def show(line):
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], [int(seed) for seed in sys.argv[2:]] or [20, 21, 22])
