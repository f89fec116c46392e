"""Run folders made up for tests: what training would leave, with chosen curves and chosen strings."""

import csv
import json
import math
from pathlib import Path

import numpy as np

from edgewise.evaluation.replays.files import save
from edgewise.evaluation.result import Evaluation
from edgewise.runs.format import FORMAT

CONFIG = {
    "recipe": "walk-ppo",
    "name": "walk-ppo",
    "seed": 0,
    "device": "cpu",
    "env": {"num_nodes": [4, 12], "max_steps": 40},
    "model": {"encoder": {"hidden": 32, "layers": 3}},
    "algorithm": {"learning_rate": 0.001, "clip": 0.2},
    "training": {"total_frames": 200_000, "curriculum": [{"name": "small"}, {"name": "large"}]},
    "evaluation": {"metric": "return", "maximise": True},
}


def make_run(folder: Path, *, seed: int = 0, rows: int = 200, evaluations: int = 11) -> Path:
    """A whole run folder that looks as if something had been learnt."""
    folder.mkdir(parents=True)
    source = np.random.default_rng(seed)
    (folder / "config.json").write_text(json.dumps({**CONFIG, "seed": seed}))
    (folder / "versions.json").write_text(
        json.dumps({"format": FORMAT, "edgewise": "0.2.0", "torch": "2.13.0"})
    )
    write_csv(folder / "metrics.csv", [metrics_row(number, rows, source) for number in range(1, rows + 1)])
    write_csv(
        folder / "timing.csv", [{"frames": 200_000, "collecting": 30.5, "learning": 61.25, "evaluating": 4.0}]
    )
    events = [
        {"time": "2026-01-05T09:00:00Z", "event": "start", "frames": 0, "total_frames": 200_000},
        {"time": "2026-01-05T09:00:00Z", "event": "stage", "frames": 0, "name": "small"},
        {"time": "2026-01-05T09:00:40Z", "event": "resume", "frames": 60_000, "checkpoint": "000000060000"},
        {"time": "2026-01-05T09:01:40Z", "event": "stop", "frames": 200_000, "reason": "done"},
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    for number in range(evaluations):
        frames = round(200_000 * number / max(1, evaluations - 1))
        evaluation(skill=progress(frames / 200_000), frames=frames, source=source).save(
            folder / "evaluations" / f"{frames:012d}.json"
        )
    for name, skill in (("random", 0.0), ("shortest_path", 1.0)):
        found = evaluation(skill=skill, frames=None, source=source, policy=name)
        found.save(folder / "evaluations" / f"baseline-{name}.json")
    save(swimming(source), folder / "replays" / "000000200000-0.json")
    save(swimming(source, frames=12), folder / "replays" / "000000000000-0.json")
    return folder


def progress(part: float) -> float:
    return 1 / (1 + math.exp(8 * (0.35 - part)))


def metrics_row(number: int, rows: int, source: np.random.Generator) -> dict[str, object]:
    part = number / rows
    return {
        "frames": round(200_000 * part),
        "iteration": number,
        "stage": "small" if part < 0.4 else "large",
        "episode/return": -18 + 15 * progress(part) + source.normal(),
        "episode/length": 18 - 15 * progress(part) + abs(source.normal()),
        "learn/policy_loss": 0.02 * source.normal(),
        "learn/value_loss": 3 * (1.1 - part) + 0.2 * abs(source.normal()),
        "learn/entropy": 1.2 - part,
        "learn/kl": 0.01 * abs(source.normal()),
        "learn/gradient_norm": 0.5 + 0.2 * abs(source.normal()),
        "learn/ratio_start": 1.0,
        "health/encoder.layers.0/attention_entropy": 1.5 - 0.4 * part,
        "schedule/learning_rate": 1e-3 * (1 - 0.9 * part),
    }


def write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def evaluation(
    *, skill: float, frames: int | None, source: np.random.Generator, policy: str = "policy"
) -> Evaluation:
    """Episodes whose return rises with skill, on instances that differ alike for everyone."""
    hardness = np.random.default_rng(99).uniform(2, 6, size=64)
    lengths = np.clip(np.round(hardness + (1 - skill) * source.exponential(14, size=64)), 1, 40)
    return Evaluation(
        env="walk",
        seed=1_000_003,
        returns=-lengths,
        lengths=lengths,
        finished=np.ones(64, dtype=bool),
        metrics={"success": (lengths < 40).astype(float)},
        policy=policy,
        baseline=frames is None,
        frames=frames,
    )


def swimming(source: np.random.Generator, *, frames: int = 90) -> dict[str, object]:
    """A replay with every kind of layer and everything around the picture."""
    angle = np.arange(frames) * 0.07
    boats = [
        {"x": (0.7 * np.cos(angle + shift)).tolist(), "y": (0.5 * np.sin(angle + shift)).tolist()}
        for shift in (0, 2.1, 4.2)
    ]
    grid_x, grid_y = (side.ravel() for side in np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-0.7, 0.7, 7)))
    speed = np.hypot(*np.meshgrid(np.linspace(-1, 1, 24), np.linspace(-0.75, 0.75, 18))).ravel() / 1.3
    quantiles = np.sort(source.normal(size=(frames, 9)), axis=1)
    return {
        "format": "edgewise-replay/1",
        "title": "harbour",
        "caption": "Three boats circle a rock and keep an eye on it.",
        "bounds": [-1, -0.75, 1, 0.75],
        "fps": 12,
        "layers": [
            {
                "name": "speed",
                "kind": "grid",
                "value": speed.tolist(),
                "columns": 24,
                "bounds": [-1, -0.75, 1, 0.75],
            },
            {
                "name": "current",
                "kind": "arrows",
                "x": grid_x.tolist(),
                "y": grid_y.tolist(),
                "dx": (-grid_y).tolist(),
                "dy": grid_x.tolist(),
                "scale": 0.1,
                "color": "muted",
                "opacity": 0.6,
            },
            {
                "name": "land",
                "kind": "polygons",
                "points": [[[-1, 0.75], [-0.55, 0.75], [-0.8, 0.45], [-1, 0.4]]],
                "color": "warn",
                "opacity": 0.5,
                "label": "land",
            },
            {
                "name": "rock",
                "kind": "nodes",
                "x": [0],
                "y": [0],
                "size": 0.09,
                "unit": "world",
                "color": "muted",
            },
            {
                "name": "sight",
                "kind": "edges",
                "between": ["boats", "rock"],
                "source": [0, 1, 2],
                "target": [0, 0, 0],
                "width": [1, 2, 3],
                "color": "teal",
                "directed": True,
            },
            {
                "name": "boats",
                "kind": "nodes",
                "x": [boat["x"][0] for boat in boats],
                "y": [boat["y"][0] for boat in boats],
                "heading": [0, 0, 0],
                "shape": "bullet",
                "unit": "world",
                "size": 0.045,
                "color": ["accent", "orange", "purple"],
                "ring": 0.25,
                "trail": 30,
                "label": ["a", "b", "c"],
                "bar": [0, 1, 2],
                "bar_max": 4,
            },
            {
                "name": "quantiles",
                "kind": "bars",
                "value": quantiles[0].tolist(),
                "title": "return quantiles of a",
            },
            {
                "name": "load",
                "kind": "bars",
                "value": [0, 1, 2],
                "label": ["boat a", "boat b", "boat c"],
                "low": 0,
                "high": 4,
            },
        ],
        "frames": [
            {
                "boats": {
                    "x": [boat["x"][t] for boat in boats],
                    "y": [boat["y"][t] for boat in boats],
                    "heading": [
                        float(math.atan2(0.5 * math.cos(angle[t] + s), -0.7 * math.sin(angle[t] + s)))
                        for s in (0, 2.1, 4.2)
                    ],
                    "bar": [t % 5, (t // 2) % 5, 2],
                },
                "quantiles": {"value": quantiles[t].tolist()},
                "load": {"value": [t % 5, (t // 2) % 5, 2]},
            }
            for t in range(frames)
        ],
        "series": [
            {
                "name": "distance of a",
                "values": [float(0.6 + 0.1 * math.cos(2 * a)) for a in angle],
                "unit": "km",
            },
            {
                "name": "reward",
                "values": [None if t % 9 == 0 else float(source.normal()) for t in range(frames)],
                "color": "orange",
            },
        ],
        "captions": [f"a is at {boats[0]['x'][t]:.2f}, {boats[0]['y'][t]:.2f}" for t in range(frames)],
        "marks": [{"frame": frames // 2, "text": "half way", "color": "good"}],
        "legend": [
            {"label": "boat", "color": "accent", "shape": "bullet"},
            {"label": "sight", "color": "teal", "shape": "line"},
        ],
        "facts": {"return": 12.5, "steps": frames - 1, "outcome": "all safe"},
    }
