"""A run whose graphs have more edges than the declared slots stops at the next health check."""

import pytest
import torch

import edgewise as ew
from edgewise.training import health

SMALL = {
    "training": {"total_frames": 64, "num_envs": 4, "rollout_length": 8},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
    "evaluation": {"every": None, "episodes": 2},
    "logging": {"tensorboard": False},
}


class CrowdConfig(ew.Config):
    """Settings of the crowd."""

    max_edges: int = 30
    """Edge slots."""


class CrowdEnv(ew.GraphEnv[CrowdConfig]):
    """Six nodes in one place, which have 30 edges; choosing any of them ends the episode."""

    def setup(self):
        rule = ew.Radius(1.0, max_edges=self.config.max_edges)
        self.graph = ew.GraphSpec(6, node_features=1, edges=rule, position_dim=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        return {"choice": torch.zeros(count, device=self.device)}

    def advance(self, state, action):
        return ew.Transition({"choice": action.float()}, reward=action.float(), terminated=action >= 0)

    def observe(self, state):
        count = len(state["choice"])
        graph = {
            "x": torch.zeros(count, 6, 1, device=self.device),
            "pos": torch.zeros(count, 6, 2, device=self.device),
            "node_mask": torch.ones(count, 6, dtype=torch.bool, device=self.device),
        }
        return {"graph": graph}


def test_enough_slots_train(tmp_path):
    ew.train(CrowdEnv, folder=tmp_path / "run", progress=False, **SMALL)


def test_one_slot_too_few_stops_the_run(tmp_path):
    with pytest.raises(ew.ConfigError, match="more edges than the declared `max_edges`") as caught:
        ew.train(CrowdEnv, folder=tmp_path / "run", progress=False, max_edges=29, **SMALL)
    assert "raise max_edges" in caught.value.hint


def test_other_diagnostics_do_not_stop_it():
    health.check_edge_slots({"health/encoder/edges/overflow": 0.0, "health/encoder/rms": 3.0}, frames=1)
