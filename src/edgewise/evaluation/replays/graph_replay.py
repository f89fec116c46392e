"""The replay of any environment: its observed graph, with legal choices and actions marked."""

from __future__ import annotations

import math
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.evaluation.replays.files import compact
from edgewise.evaluation.replays.graph_layout import project
from edgewise.evaluation.replays.graph_scene import MAX_EDGES, Scene
from edgewise.evaluation.replays.schema import FORMAT
from edgewise.graphs.actions import ActionLayout, ActionMarks, ChooseNode
from edgewise.graphs.keys import ACTIVE
from edgewise.graphs.spec import GraphSpec

MAX_FRAMES = 300
MAX_SERIES = 6
SHAPES = ("circle", "square", "triangle", "diamond", "hexagon", "bullet")
"""Shape of each node type."""
SIZES = (7.0, 11.0)
"""Radius of a node in pixels where the second feature is smallest and largest."""
PALEST = 0.15
"""Colour of the smallest value of a feature, on a ramp that begins at the background."""
ARROW = 0.12
"""Length of the largest action's arrow, as a part of the picture."""


def frame_times(length: int) -> list[int]:
    """Return the steps of an episode that are drawn: all, or at most `MAX_FRAMES` at equal distances."""
    if length <= MAX_FRAMES:
        return list(range(length))
    return [round(frame * (length - 1) / (MAX_FRAMES - 1)) for frame in range(MAX_FRAMES)]


def graph_replay(
    observations: TensorDict,
    spec: GraphSpec,
    actions: ActionLayout,
    *,
    title: str,
    times: list[int] | None = None,
    action: Tensor | None = None,
    returns: Tensor | None = None,
) -> dict[str, Any]:
    """Build the replay of one episode; the format is documented in docs/replay-format.md.

    Nodes are drawn at their positions if the graph has any, else at places computed once from the edges. The
    colour shows the node feature that changes most, the size the next one, the shape the node type.

    Args:
        observations: what the policy observed at the K drawn steps, `[K]`: `graph` and, where the environment
            has them, `action_mask`, `choices`, `agents` and `metrics`.
        spec: shape of the graphs.
        actions: action layout.
        title: of the replay.
        times: step of each frame; 0 to K - 1 if not given.
        action: action at each frame but the last, `[K - 1, ...]`; nothing is marked if not given.
        returns: undiscounted return so far at each frame, `[K]`, or `[K, A]` where agents act.
    """
    times = list(range(len(observations))) if times is None else times
    seen = observations.cpu()
    scene = Scene.of(seen, spec)
    marks = _marks(actions, action, seen)
    legal = actions.legal_nodes(seen)
    styles = _node_styles(scene, legal)
    frames = [_frame(scene, frame, styles[frame], marks[frame]) for frame in range(len(seen))]
    has_arrows = any(mark.arrows is not None for mark in marks)
    looks: dict[str, dict[str, Any]] = {
        "edges": {"kind": "edges", "between": "nodes", "color": "faint", "directed": scene.directed},
        "chosen edges": {"kind": "edges", "between": "nodes", "color": "accent", "width": 3.5},
        "chosen": {"kind": "nodes", "size": SIZES[1] + 5, "color": "accent"},
        "nodes": {"kind": "nodes", "label_place": "center" if scene.numbered else "above"},
        "arrows": {"kind": "arrows", "color": "accent", "width": 2},
    }
    if isinstance(actions, ChooseNode):
        looks["chosen"]["trail"] = 12
    if not has_arrows:
        del looks["arrows"]
    layers = [{"name": name, **look, **frames[0][name]} for name, look in looks.items()]
    replay = {
        "format": FORMAT,
        "title": title,
        "fps": 8 if scene.moves else 3,
        "smooth": scene.moves,
        "layers": layers,
        "frames": [{name: frame[name] for name in looks} for frame in frames],
        "time": times,
        "captions": _captions(marks, times),
        "series": _series(seen, returns),
        "legend": _legend(scene, legal, has_action=action is not None),
    }
    if scene.notes:
        replay["caption"] = " ".join(scene.notes)
    return compact(replay)


def _marks(actions: ActionLayout, action: Tensor | None, seen: TensorDictBase) -> list[ActionMarks]:
    """Return the marks of each frame; the last one keeps the nodes chosen before."""
    if action is None or not len(action):
        return [ActionMarks()] * len(seen)
    marks = [actions.marks(chosen, seen[frame]) for frame, chosen in enumerate(action.cpu())]
    return [*marks, ActionMarks(nodes=marks[-1].nodes)]


def _node_styles(scene: Scene, legal: Tensor | None) -> list[dict[str, Any]]:
    """Return colour, size, shape and outline of the nodes in each frame."""
    shades = _shades(scene)
    colour = (PALEST + (1 - PALEST) * shades[0]).tolist() if shades else None
    size = (SIZES[0] + (SIZES[1] - SIZES[0]) * shades[1]).tolist() if len(shades) > 1 else None
    allowed = None if legal is None else (legal[:, scene.slots] & scene.exists).tolist()
    styles = []
    for frame in range(len(scene.exists)):
        style: dict[str, Any] = {"size": 8 if size is None else size[frame], "color": "muted"}
        if colour is not None:
            style["color"] = colour[frame]
        if allowed is not None:
            style["outline"] = ["good" if free else "muted" for free in allowed[frame]]
        if scene.types is not None:
            style["shape"] = [SHAPES[kind % len(SHAPES)] for kind in scene.types[frame].tolist()]
        styles.append(style)
    return styles


def _shades(scene: Scene) -> list[Tensor]:
    """Return the two most telling features, scaled to [0, 1], `[K, n]` each."""
    return [_scaled(scene, feature) for feature in _shown_features(scene)]


def _shown_features(scene: Scene) -> list[int]:
    """Return up to two features that differ between nodes or steps, those that change over time first."""
    ranks = []
    for feature in range(scene.features.shape[-1]):
        shade = _scaled(scene, feature)
        spread = float(shade[scene.exists].std(correction=0)) if scene.exists.any() else 0.0
        changes = bool(((shade[1:] != shade[:-1]) & scene.exists[1:] & scene.exists[:-1]).any())
        if spread > 0:
            ranks.append((not changes, feature))
    return [feature for _, feature in sorted(ranks)[:2]]


def _scaled(scene: Scene, feature: int) -> Tensor:
    values = scene.features[..., feature]
    present = values[scene.exists]
    if not len(present):
        return torch.zeros_like(values)
    low, high = present.min(), present.max()
    return ((values - low) / (high - low).clamp(min=1e-9)).clamp(0.0, 1.0)


def _frame(scene: Scene, frame: int, style: dict[str, Any], marks: ActionMarks) -> dict[str, dict[str, Any]]:
    """Return the fields of every layer in one frame."""
    exists, place = scene.exists[frame], scene.place[frame]
    x, y = place.T.tolist()
    drawn = {slot: number for number, slot in enumerate(scene.slots.tolist()) if exists[number]}
    nodes = [drawn[slot] for slot in marks.nodes if slot in drawn]
    fields = {
        "nodes": {"x": x, "y": y, "opacity": exists.float().tolist(), **style},
        "edges": _edges(scene, frame, marks.edge_shades),
        "chosen": {"x": [x[node] for node in nodes], "y": [y[node] for node in nodes]},
        "chosen edges": _chosen_edges(scene, frame, marks.edges),
        "arrows": _arrows(scene, frame, drawn, marks.arrows),
    }
    if scene.numbered or marks.labels:
        names = {slot: str(slot) for slot in drawn} if scene.numbered else {}
        labels = {**names, **marks.labels}
        fields["nodes"]["label"] = [
            labels.get(slot, "") if slot in drawn else "" for slot in scene.slots.tolist()
        ]
    return fields


def _edges(scene: Scene, frame: int, shades: Tensor | None) -> dict[str, Any]:
    """Return the edges of one frame, both directions once; only the shortest if there are too many."""
    source, target, slot = scene.edges[frame]
    if not scene.directed and shades is None:
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        source, target = torch.stack((low, high)).unique(dim=1)
    if len(source) > MAX_EDGES:
        place = scene.place[frame]
        length = (place[source] - place[target]).norm(dim=-1)
        kept = length.argsort(stable=True)[:MAX_EDGES].sort().values
        source, target, slot = source[kept], target[kept], slot[kept]
    fields: dict[str, Any] = {"source": source.tolist(), "target": target.tolist()}
    if shades is not None:
        fields["color"] = shades[slot].clamp(0.0, 1.0).tolist()
    return fields


def _chosen_edges(scene: Scene, frame: int, slots: tuple[int, ...]) -> dict[str, Any]:
    source, target, slot = scene.edges[frame]
    chosen = torch.isin(slot, torch.tensor(slots, dtype=torch.int64))
    return {"source": source[chosen].tolist(), "target": target[chosen].tolist()}


def _arrows(scene: Scene, frame: int, drawn: dict[int, int], arrows: Tensor | None) -> dict[str, Any]:
    """Return the arrows of agents; the largest action has a fixed part of the picture's length."""
    if arrows is None:
        return {"x": [], "y": [], "dx": [], "dy": []}
    arrows = project(arrows)
    agents = [agent for agent in range(len(arrows)) if agent in drawn]
    x, y = scene.place[frame][[drawn[agent] for agent in agents]].T.tolist()
    dx, dy = (ARROW * scene.span * arrows[agents]).T.tolist()
    return {"x": x, "y": y, "dx": dx, "dy": dy}


def _captions(marks: list[ActionMarks], times: list[int]) -> list[str]:
    texts = [*(mark.text for mark in marks[:-1]), "end"]
    return [
        f"step {time}: {text}" if text else f"step {time}" for text, time in zip(texts, times, strict=True)
    ]


def _series(seen: TensorDictBase, returns: Tensor | None) -> list[dict[str, Any]]:
    """Return the return so far, and the metrics of the environment."""
    series = []
    if returns is not None:
        series.append({"name": "return so far", "values": _numbers(_mean_over_agents(returns.cpu(), seen))})
    metrics = seen.get("metrics", None)
    for name, values in () if metrics is None else metrics.items(include_nested=True, leaves_only=True):
        label = name if isinstance(name, str) else ".".join(name)
        series.append({"name": label, "values": _numbers(values.reshape(len(seen)))})
    return series[:MAX_SERIES]


def _mean_over_agents(returns: Tensor, seen: TensorDictBase) -> Tensor:
    """Return `[K]`: the mean over the agents that acted, if there are agents."""
    if returns.dim() == 1:
        return returns
    acted = seen[ACTIVE].any(0)
    return returns[:, acted].sum(-1) / max(int(acted.sum()), 1)


def _numbers(values: Tensor) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.double().tolist()]


def _legend(scene: Scene, legal: Tensor | None, *, has_action: bool) -> list[dict[str, Any]]:
    shown = _shown_features(scene)
    legend: list[dict[str, Any]] = []
    if has_action:
        legend.append({"label": "action", "color": "accent"})
    if legal is not None:
        legend.append({"label": "legal (outline)", "color": "good"})
    legend += [{"label": f"colour: x[{feature}] largest", "color": 1.0} for feature in shown[:1]]
    legend += [{"label": f"size: x[{feature}]", "color": "muted"} for feature in shown[1:]]
    return legend
