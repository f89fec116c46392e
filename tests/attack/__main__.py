"""Attack edgewise: damaged run folders, links that lead outside, random inputs, runs started at once.

    python -m tests.attack

Prints what became of every case, and fails if one gave a traceback, wrote outside of its folder, or changed a
figure without a word. Cases depend on the seed alone.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import torch
from tests.attack.damage import attack_all, every_damage, make_run
from tests.attack.inputs import fuzz
from tests.attack.judge import run
from tests.attack.links import attack_links
from tests.attack.places import try_forged, try_places

PARALLEL = 4


def start_at_once(place: Path, count: int = PARALLEL) -> list[str]:
    """Start runs of one recipe at the same moment in one folder; return what went wrong."""
    quick = [
        "--total-frames=16",
        "--num-envs=2",
        "--rollout-length=8",
        "--evaluation.every=none",
        "--episodes=2",
    ]
    children = []
    for seed in range(count):
        child = os.fork()
        if not child:
            outcome = run(["train", "graphwalk-ppo", *quick, f"--seed={seed}"], within=place)
            os._exit(outcome.code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    folders = sorted(path.name for path in (place / "runs").iterdir())
    expected = [f"graphwalk-ppo-{number}" for number in range(1, count + 1)]
    return [] if codes == [0] * count and folders == expected else [f"exit codes {codes}, folders {folders}"]


def main() -> int:
    """Run the attacks and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=ATTACKS, help="one of the attacks; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the inputs (0)")
    parser.add_argument("--share", type=float, default=1.0, help="share of the random inputs to try (1)")
    parser.add_argument("--every", type=int, default=1, help="carry out every N-th damage (1)")
    parser.add_argument("--first", type=int, default=0, help="the first damage, from 0 (0)")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    torch.set_num_threads(1)
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in [options.only] if options.only else ATTACKS:
            place = Path(folder) / name
            place.mkdir()
            faults += ATTACKS[name](place, options)
    print(f"{faults} faults")
    return int(bool(faults))


def _damage(place: Path, options: argparse.Namespace) -> int:
    count, damaged, bad = attack_all(place, lambda run: every_damage(run)[options.first :: options.every])
    print(f"{count} damages to the files of a run")
    for verb, verdicts in damaged.items():
        print(f"  {verb:12} " + ", ".join(f"{number} {name}" for name, number in sorted(verdicts.items())))
    return len(bad)


def _links(place: Path, options: argparse.Namespace) -> int:
    count, followed = attack_links(place, make_run)
    print(f"{count} links that lead outside, with four verbs each: {followed or 'none is followed'}")
    return len(followed)


def _inputs(place: Path, options: argparse.Namespace) -> int:
    tried, bad = fuzz(place, share=options.share, seed=options.seed)
    print(f"{sum(sum(counts.values()) for counts in tried.values())} random inputs")
    for kind, counts in tried.items():
        print(f"  {kind:12} " + ", ".join(f"{number} {name}" for name, number in counts.items() if number))
    return len(bad)


def _parallel(place: Path, options: argparse.Namespace) -> int:
    lost = start_at_once(place)
    print(f"{PARALLEL} runs started at once: {lost or 'each has its folder'}")
    return len(lost)


def _places(place: Path, options: argparse.Namespace) -> int:
    count, bad = try_places(place)
    print(f"{count} links, pipes, devices and folders in place of files: {bad or 'all are refused'}")
    return len(bad)


def _forged(place: Path, options: argparse.Namespace) -> int:
    counts, bad = try_forged(place)
    print(f"{sum(counts.values()) + len(bad)} forged configs: {counts}{''.join(bad)}")
    return len(bad)


ATTACKS = {
    "damage": _damage,
    "links": _links,
    "places": _places,
    "forged": _forged,
    "inputs": _inputs,
    "parallel": _parallel,
}


if __name__ == "__main__":
    sys.exit(main())
