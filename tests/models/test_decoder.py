"""Decoders give what a loop over single steps gives, whatever is padded, shared or permuted."""

import math

import pytest
import torch
from tensordict import TensorDict

import edgewise as ew
from edgewise.graphs.step_spec import StepSpec
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.decoder import DISTANCE_GAIN, DistanceTerm, NodeDecoder, PointerDecoder, SetDecoder
from edgewise.models.instance_actor import InstanceActor
from edgewise.plugins import allow_typed

MODEL = ew.ModelConfig(encoder=ew.EncoderConfig(hidden=16, layers=2, heads=2))
PROBLEMS = {
    "tsp": {"num_cities": (4, 7)},
    "cvrptw": {"num_customers": (3, 5)},
    "job_shop": {"num_jobs": (2, 4), "num_machines": (2, 3)},
    "vertex_cover": {"num_nodes": (5, 8)},
    "max_cut": {"num_nodes": (6, 9)},
}


def actor_of(name, *, head="auto", worlds=6, seed=0):
    torch.manual_seed(1)
    env = ew.make_env(name, num_envs=worlds, seed=seed, **PROBLEMS[name])
    model = make_actor_critic(env.graph, env.actions, MODEL.model_copy(update={"head": head}))
    assert isinstance(model.actor, InstanceActor)
    return env, model


def some_steps(env, count=4):
    """Return roots of some steps of each world, `[B, count]`, without resets."""
    root, found = env.reset(), []
    generator = torch.Generator().manual_seed(3)
    for _ in range(count):
        root = root.set("action", env.actions.sample(root, env.graph, generator=generator))
        found.append(root.exclude("state", "metrics"))
        following = env.simulate(root).exclude("reward")
        root = following.where(~following["done"].squeeze(-1), root.select(*following.keys()))
    return torch.stack(found, 1)


@pytest.mark.parametrize("name", PROBLEMS)
def test_steps_of_an_instance_together_are_those_one_by_one(name):
    env, model = actor_of(name)
    steps = some_steps(env)
    batch = TensorDict({"graph": steps["graph"][:, 0], "steps": steps.exclude("graph")}, [len(steps)])
    together = model.actor.get_dist(batch)
    values = model.critic(batch.copy())["state_value"]
    both, both_values = model.evaluate(batch)
    for world in range(len(steps)):
        for step in range(steps.shape[1]):
            alone = model.actor.get_dist(steps[world, step].unsqueeze(0))
            torch.testing.assert_close(together.logits[world, step], alone.logits[0], rtol=1e-4, atol=2e-5)
            value = model.critic(steps[world, step].unsqueeze(0).copy())["state_value"][0]
            torch.testing.assert_close(values[world, step], value, rtol=1e-4, atol=2e-5)
    torch.testing.assert_close(both.logits, together.logits)
    torch.testing.assert_close(both_values, values)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_policy_on_instances_is_the_policy(name):
    env, model = actor_of(name)
    root = env.reset()
    prepared = model.actor.on_instances(root)
    rows = torch.arange(len(root)).repeat_interleave(3)
    spread = root[rows]
    found = prepared.get_dist(spread.exclude("graph"))
    torch.testing.assert_close(found.logits, model.actor.get_dist(spread).logits, rtol=1e-4, atol=2e-5)


def test_the_pointer_is_the_attention_model():
    """An independent version for one step: query, masked attention of each head, clipped products."""
    torch.manual_seed(0)
    spec, width, heads = StepSpec(("current", "first"), 0, 1), 8, 2
    config = ew.ModelConfig(encoder=ew.EncoderConfig(hidden=width, heads=heads), logit_clip=5.0)
    decoder = PointerDecoder(config, spec).double()
    h, exists = torch.randn(1, 5, width).double(), torch.tensor([[True, True, True, True, False]])
    step = {
        "nodes": {"current": torch.tensor([2]), "first": torch.tensor([-1])},
        "u": torch.rand(1, 1).double(),
    }
    mask = torch.tensor([[True, False, True, True, True]])
    observation = TensorDict({"step": step, "action_mask": mask}, [1])
    torch.nn.init.normal_(decoder.glimpse.no_node)
    found = decoder(decoder.prepare(h, {"node_mask": exists}), observation).probs[0]
    g = decoder.glimpse
    current, first = g.references.weight.chunk(2)
    query = g.graph(h[0, :4].mean(0)) + current @ h[0, 2] + g.no_node[1, 0] + g.features(step["u"])[0]
    key, value, pointer = (h[0] @ part.T for part in g.project.weight.chunk(3))
    allowed, seen = [0, 2, 3], []
    for head in range(heads):
        part = slice(head * width // heads, (head + 1) * width // heads)
        score = torch.stack([query[part] @ key[node, part] for node in allowed]) / math.sqrt(width // heads)
        seen.append(score.softmax(0) @ value[allowed][:, part])
    score = torch.stack([torch.cat(seen) @ pointer[node] for node in allowed]) / math.sqrt(width)
    expected = torch.zeros(5).double()
    expected[allowed] = (5.0 * score.tanh()).softmax(0)
    torch.testing.assert_close(found, expected)
    assert first.shape == current.shape


@pytest.mark.parametrize("name", PROBLEMS)
def test_padding_has_no_effect(name):
    env, model = actor_of(name)
    root = env.reset()
    before = model.actor.get_dist(root).logits
    graph = root["graph"].clone()
    absent = ~graph["node_mask"]
    graph["x"][absent] = 1e6
    root = root.copy().set("graph", graph)
    if "x" in root["step"] and name != "job_shop":
        step = root["step"].clone()
        step["x"][absent] = -1e6
        root.set("step", step)
    torch.testing.assert_close(model.actor.get_dist(root).logits, before)


def test_the_order_of_nodes_does_not_matter():
    env, model = actor_of("vertex_cover")
    root = env.reset()
    order = torch.randperm(env.graph.num_nodes, generator=torch.Generator().manual_seed(0))
    state = root["state"].clone()
    for key in ("exists", "weight", "chosen"):
        state[key] = state[key][:, order]
    state["adjacent"] = state["adjacent"][:, order][:, :, order]
    state["edge_index"] = order.argsort()[state["edge_index"]]
    found = model.actor.get_dist(env.worlds_in(state)).logits
    torch.testing.assert_close(found, model.actor.get_dist(root).logits[:, order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name, decoder", [("tsp", PointerDecoder), ("job_shop", SetDecoder), ("max_cut", PointerDecoder)]
)
def test_gradients_reach_every_parameter(name, decoder):
    env, model = actor_of(name)
    assert isinstance(model.actor.decoder, decoder)
    steps = some_steps(env)
    distribution, value = model.evaluate(steps.reshape(-1))
    (distribution.log_prob(steps["action"].reshape(-1)).sum() + value.sum()).backward()
    without = {
        key
        for key, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.abs().sum()
    }
    assert not {key for key in without if "no_node" not in key}


def test_other_layouts_use_their_head():
    """A head of one's own, or an action prior, reads node embeddings of every step."""
    address = "edgewise.models.heads:ChooseNodeHead"
    allow_typed([address])
    env, model = actor_of("tsp", head=address)
    assert isinstance(model.actor.decoder, NodeDecoder)
    steps = some_steps(env)
    batch = TensorDict({"graph": steps["graph"][:, 0], "steps": steps.exclude("graph")}, [len(steps)])
    together, alone = model.actor.get_dist(batch), model.actor.get_dist(steps.reshape(-1))
    torch.testing.assert_close(together.logits.flatten(0, 1), alone.logits, rtol=1e-4, atol=2e-5)
    moved = steps.clone()
    moved["step", "nodes", "current"] = torch.zeros_like(moved["step", "nodes", "current"])
    assert not torch.allclose(model.actor.get_dist(moved.reshape(-1)).logits, alone.logits, atol=1e-5)


def test_recurrent_models_are_refused():
    env = ew.make_env("tsp", num_envs=1)
    with pytest.raises(ew.ConfigError, match="describes an instance once"):
        make_actor_critic(env.graph, env.actions, ew.ModelConfig(recurrent=True))


def test_near_nodes_score_better_in_units_that_fit_the_instance():
    """By hand for one instance; larger places, absent nodes and no node change nothing."""
    torch.manual_seed(0)
    term, pos = DistanceTerm(2).double(), torch.rand(1, 5, 2).double()
    with torch.no_grad():
        term.weight.copy_(torch.tensor([0.03, -0.02]))
    exists = torch.tensor([[True, True, True, True, False]])
    apart = torch.cdist(pos[0, :4], pos[0, :4])
    unit = 2 * apart.sum() / 12 / math.sqrt(4)
    expected = -DISTANCE_GAIN * (0.03 * apart[2] - 0.02 * apart[0]) / unit
    for scale, elsewhere in ((1.0, 0.0), (50.0, 9.0)):
        placed = pos * scale
        placed[0, 4] += elsewhere
        table = term.prepare(placed, exists)
        found = term(table, torch.tensor([[[2, 5]], [[0, 5]]]))
        torch.testing.assert_close(found[0, 0, :4], expected)
        assert (found[0, 0, 4] == 0).all()
        assert (found[0, 1] == 0).all()


def test_tours_read_distances_and_vertex_covers_have_none():
    for name, has_distances in (("tsp", True), ("vertex_cover", False)):
        _, model = actor_of(name)
        assert (model.actor.decoder.distance is not None) == has_distances
    env, model = actor_of("tsp")
    steps = some_steps(env)
    before = model.actor.get_dist(steps).logits
    with torch.no_grad():
        model.actor.decoder.distance.weight.fill_(0.1)
    current = steps["step", "nodes", "current"]
    changed = (model.actor.get_dist(steps).logits - before).abs().amax(-1) > 1e-3
    assert torch.equal(changed, (current >= 0) & (steps["action_mask"].sum(-1) > 1))
