"""Observation of proofs: graphs of goals and successors, and metrics."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.reasoning import dynamics

NODE_FEATURES = 6
"""Features of a goal: proved, failed or given up, claimed, share of atoms, of free arguments, assumed."""
ATOM_FEATURES = 2
"""Features of an atom: whether each argument is a variable."""


def padded_spec(max_successors: int) -> GraphSpec:
    """Build the spec of a star graph: the goal is node 0, its successors are nodes 1 to S."""
    edges = [(0, node) for node in range(1, max_successors + 1)]
    star = TopologyBank.from_edge_lists([edges], both_ways=True)
    return GraphSpec(1 + max_successors, NODE_FEATURES, edges=Topology(star))


def atoms_spec(max_atoms: int) -> GraphSpec:
    """Build the spec of the `state` view: the atoms of the goal, without edges."""
    return GraphSpec(max_atoms, ATOM_FEATURES, edges=Explicit())


def padded_graph(
    atoms: Tensor, successors: Tensor, filled: Tensor, *, ends: dynamics.Ends, num_entities: int
) -> dict[str, Tensor]:
    """Build the graph of `padded_spec` from `[B, A, 3]`, `[B, S, A, 3]` and `[B, S]`."""
    goals = torch.cat((atoms.unsqueeze(1), successors), 1)
    return {
        "x": goal_features(goals, ends=ends, num_entities=num_entities),
        "node_mask": torch.cat((torch.ones_like(filled[:, :1]), filled), 1),
        "topology": torch.zeros(len(atoms), dtype=torch.int64, device=atoms.device),
    }


def goal_features(goals: Tensor, *, ends: dynamics.Ends, num_entities: int) -> Tensor:
    """Compute features `[..., NODE_FEATURES]` of goals `[..., A, 3]`, independent of names."""
    first, size = goals[..., 0, 0], goals.shape[-2]
    present = (goals[..., 0] > 0) & (goals[..., 0] <= ends.num_predicates)
    free = (goals[..., 1:] > num_entities).sum((-1, -2))
    flags = (
        first == ends.true,
        (first == ends.false) | (first == ends.end_false),
        first == ends.end_true,
    )
    shares = present.sum(-1) / size, free / (2 * size)
    return torch.stack((*flags, *shares, first > ends.assumed_offset), -1)


def atoms_graph(atoms: Tensor, *, num_entities: int) -> dict[str, Tensor]:
    """Build the graph of `atoms_spec` from `[B, A, 3]`."""
    lead, device = atoms.shape[:-2], atoms.device
    return {
        "x": (atoms[..., 1:] > num_entities).float(),
        "node_mask": atoms[..., 0] > 0,
        "edge_index": torch.zeros(*lead, 2, 0, dtype=torch.int64, device=device),
        "edge_mask": torch.zeros(*lead, 0, dtype=torch.bool, device=device),
    }


def metrics(state: TensorDict, *, ends: dynamics.Ends, max_steps: int) -> dict[str, Tensor]:
    """Compute the metrics of proofs, each `[B]` float; outcomes are zero until the proof is over."""
    atoms, label, step = state["atoms"], state["label"], state["step"]
    over = dynamics.is_over(atoms, ends) | (step >= max_steps)
    success = dynamics.is_success(atoms, ends)
    kind = dynamics.outcome(success, label)
    each = (kind.unsqueeze(-1) == torch.arange(4, device=kind.device)) & over.unsqueeze(-1)
    found = dict(zip(dynamics.OUTCOMES, each.float().unbind(-1), strict=True))
    return {
        "success": success.float(),
        "correct": found["true_positive"] + found["true_negative"],
        "label": label.float(),
        "proof_depth": (success * step).float(),
        "gave_up": (atoms[:, 0, 0] == ends.end_false).float(),
        **found,
    }
