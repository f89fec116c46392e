"""Encoders are conditioned on the features of a whole graph, alike in every layout, each graph on its own."""

from dataclasses import replace

import pytest
import torch
from tests.models.worlds import explicit_spec, radius_spec, random_graph

import edgewise as ew
from edgewise.evaluation.ablation import ablate
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.build import make_encoder
from edgewise.models.config import EncoderConfig, ModelConfig

LEARN = {
    "ppo": {
        "num_envs": 64,
        "rollout_length": 4,
        "minibatch_size": 64,
        "total_frames": 8192,
        "learning_rate": 0.001,
    },
    "dqn": {"total_frames": 3000, "learning_rate": 0.01},
}
CONFIGS = (
    {"kind": "transformer", "dense": "always"},
    {"kind": "transformer", "compact": True, "dense": "never"},
    {"kind": "transformer", "compact": False, "dense": "never"},
    {"kind": "transformer", "part_size": 3},
    {"kind": "gnn", "conv": "SAGEConv"},
    {"kind": "mlp"},
)


def encoded(options, spec, graph):
    torch.manual_seed(0)
    encoder = make_encoder(spec, EncoderConfig(hidden=16, heads=2, layers=2, **options)).double()
    return encoder, encoder(graph)


def graphs(spec, count=5):
    graph = random_graph(spec, count, dtype=torch.float64)
    graph["u"] = torch.randn(count, spec.graph_features, dtype=torch.float64)
    return graph


@pytest.mark.parametrize("spec", [explicit_spec(), radius_spec()], ids=["explicit", "radius"])
def test_every_layout_gives_the_same_embeddings(spec):
    spec = replace(spec, graph_features=3)
    graph = graphs(spec)
    (_, first), *others = (encoded(options, spec, graph) for options in CONFIGS[:4])
    for _, other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", CONFIGS, ids=str)
def test_features_of_one_graph_change_that_graph_alone(options):
    spec = replace(explicit_spec(), graph_features=3)
    graph = graphs(spec)
    encoder, before = encoded(options, spec, graph)
    graph["u"][2, 1] += 1.0
    changed = (encoder(graph) - before).abs().amax(-1) > 1e-6
    assert changed[2][graph["node_mask"][2]].all()
    changed[2] = False
    assert not changed.any()
    assert encoder.diagnostics(graph)["output/rms"].isfinite()


def test_every_block_is_conditioned():
    spec = replace(explicit_spec(), graph_features=3)
    graph = graphs(spec)
    encoder, h = encoded(CONFIGS[0], spec, graph)
    h.square().sum().backward()
    for layer in encoder.trunk.condition.layers:
        assert layer.weight.grad.abs().max() > 0


def test_graphs_without_features_have_the_weights_that_they_had():
    assert make_encoder(explicit_spec()).trunk.condition is None


class Weather(ew.GraphEnv[ew.Config]):
    """Choose node 0 in the rain and node 1 in the sun; only the graph knows the weather."""

    def setup(self):
        self.graph = ew.GraphSpec(3, 1, graph_features=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        return {"rain": torch.rand(count, generator=self.generator) < 0.5}

    def advance(self, state, action):
        right = action == torch.where(state["rain"], 0, 1)
        done = torch.ones_like(right)
        return ew.Transition({}, reward=right.float(), terminated=done)

    def observe(self, state):
        count = len(state["rain"])
        rain = state["rain"].float()
        none = torch.zeros(count, 2, 0, dtype=torch.int64)
        return {
            "graph": {
                "x": torch.arange(3.0).expand(count, 3).unsqueeze(-1),
                "node_mask": torch.ones(count, 3, dtype=torch.bool),
                "edge_index": none,
                "edge_mask": none[:, 0].bool(),
                "u": torch.stack((rain, 1 - rain), -1),
            }
        }


def test_actor_and_critic_read_them_and_an_ablation_takes_them_away():
    env = Weather(num_envs=64, seed=0)
    ew.check_graph_env(env)
    torch.manual_seed(0)
    model = make_actor_critic(env.graph, env.actions, ModelConfig(policy_gain=1.0))
    root = env.reset()
    rain = root["state", "rain"]
    with torch.no_grad():
        logits = model.actor.get_dist(root).logits
        value = model.critic(root.copy())["state_value"].squeeze(-1)
        for seen in (logits, value.unsqueeze(-1)):
            assert (seen[rain][0] - seen[~rain][0]).abs().max() > 1e-3
    shown = []
    policy = ablate(
        lambda given: shown.append(given) or given.set("action", torch.zeros(64).long()), "u", env
    )
    policy(root)
    assert torch.allclose(shown[0]["graph", "u"], root["graph", "u"].mean(0).expand(64, 2))


@pytest.mark.parametrize("method", ["ppo", "dqn"])
def test_a_policy_learns_from_the_graph_alone(method, tmp_path):
    """Without `u` no policy gets more than half."""
    small = {"model.encoder": {"hidden": 16, "layers": 1}}
    run = ew.train(
        Weather, algorithm=method, folder=tmp_path / "run", progress=False, **LEARN[method], **small
    )
    assert run.evaluate(episodes=100).summary()["return"].estimate > 0.95
