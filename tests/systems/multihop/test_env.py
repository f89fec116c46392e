"""The environment around the rules: what is seen, chosen and charged, and policies that serve any network."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.systems.multihop.networks.written import write_instance

from edgewise.config.errors import ConfigError, DataError
from edgewise.envs.contract import check_graph_env
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.multihop.baselines import BASELINES
from edgewise.systems.multihop.config import MultihopConfig
from edgewise.systems.multihop.env import MultihopEnv
from edgewise.systems.multihop.scenario import load_instances
from edgewise.systems.multihop.simulate import baseline_run

MIXED = ("two-path", "line4", "cross", "diamond", "barabasi8*2")


def multihop(num_envs=8, seed=0, **settings):
    return MultihopEnv(MultihopConfig(**{"networks": MIXED, **settings}), num_envs=num_envs, seed=seed)


@pytest.mark.parametrize(
    "settings", [{}, {"idle_allowed": False}, {"networks": ("diamond",), "prior": "length-backpressure"}]
)
def test_mixed_networks_keep_the_contract(settings):
    check_graph_env(multihop(**settings))


@settings(max_examples=50)
@given(
    seed=st.integers(0, 1000), baseline=st.sampled_from([*sorted(BASELINES), "random"]), idle=st.booleans()
)
def test_packets_are_counted_and_moves_legal(seed, baseline, idle):
    env = multihop(6, seed, idle_allowed=idle)
    root = env.reset()
    act = env.rand_action if baseline == "random" else BASELINES[baseline](env)
    for _ in range(8):
        root = act(root)
        assert root["action_mask"].gather(-1, root["action"].unsqueeze(-1)).all()
        step = env.step(root)
        state = step["next", "state"]
        waiting = state["queues"].sum((-2, -1), dtype=torch.float64)
        assert torch.equal(state["arrived"], state["delivered"] + waiting)
        assert (state["carried"] <= step["state", "capacity"]).all()
        root = env.step_mdp(step)


def test_the_reward_is_the_backlog_before_arrivals():
    env = multihop(32, reward_scale=4.0)
    batch = env.rollout(20, break_when_any_done=False)
    state, after = batch["state"], batch["next", "state"]
    came = after["arrived"] - state["arrived"]
    before_arrivals = after["queues"].sum((-2, -1)) - came
    assert torch.allclose(batch["next", "reward"].squeeze(-1), -before_arrivals.float() / 4.0)


def test_overflow_is_truncated_and_costs():
    env = multihop(4, networks=("two-path",), max_backlog=5.0)
    root = env.reset()
    while not root["done"].all():
        step = env.step(root.set("action", torch.zeros(4, 8, dtype=torch.int64)))
        root = env.step_mdp(step)
        over = root["state", "overflow"]
        assert torch.equal(root["truncated"].squeeze(-1), over)
        before_arrivals = step["state", "queues"].sum((-2, -1))
        assert torch.equal(over, before_arrivals > 5.0)
        assert torch.equal(step["next", "reward"].squeeze(-1), -(before_arrivals + 5.0 * over))
    assert not root["terminated"].any()
    assert (root["metrics", "overflow"] == 1.0).all()


def test_what_is_seen_is_what_the_card_says():
    env = multihop(40)
    root = env.rollout(5, BASELINES["spbp"](env), break_when_any_done=False)[:, -1]["next"]
    state, graph, networks = root["state"], root["graph"], env.networks
    nodes, classes = networks.num_nodes, networks.num_classes
    x = graph["x"].view(40, nodes, classes, 4)
    number = state["network"]
    assert torch.allclose(x[..., 0], torch.log1p(state["queues"]))
    assert torch.allclose(x[..., 1], torch.log1p(networks.arrival_rate[number]))
    edges = env.graph.edges_of(graph)
    for world in range(40):
        for link in range(networks.num_links):
            for kind in range(classes):
                slot = link * classes + kind
                assert edges.mask[world, slot] == networks.usable[number[world], link, kind]
                if not edges.mask[world, slot]:
                    continue
                start, end = networks.start[number[world], link], networks.end[number[world], link]
                assert edges.index[world, :, slot].tolist() == [start * classes + kind, end * classes + kind]
                capacity = torch.log1p(state["capacity"][world, link])
                assert edges.attr[world, slot, -1].item() == pytest.approx(capacity.item())


def test_capacities_are_drawn_anew_in_every_slot():
    env = multihop(200, networks=("diamond",))
    capacity = env.rollout(50, break_when_any_done=False)["state", "capacity"]
    rate = env.networks.rate[0]
    assert torch.allclose(capacity.mean((0, 1)), rate, rtol=0.1)
    assert torch.allclose(capacity.var(1).mean(0), rate, rtol=0.1), "of a Poisson law, in each world"


def test_queues_never_grow_where_no_pair_is_shown():
    env = multihop(30)
    batch = env.rollout(30, break_when_any_done=False)
    hidden = ~batch["next", "graph", "node_mask"]
    assert not batch["next", "state", "queues"].flatten(-2)[hidden].any()


def test_idle_is_a_last_resort_where_asked():
    env = multihop(16, idle_allowed=False)
    mask = env.rollout(10, break_when_any_done=False)["next", "action_mask"]
    assert torch.equal(mask[..., 0], ~mask[..., 1:].any(-1))
    always = multihop(16).rollout(5, break_when_any_done=False)["next", "action_mask"]
    assert always[..., 0].all()


def test_a_router_in_the_environment_does_as_well_as_on_its_own():
    env = multihop(64, networks=("two-path",), max_steps=1000)
    root = env.rollout(500, BASELINES["spbp"](env), break_when_any_done=False)[:, -1]["next"]
    alone = baseline_run("spbp", load_instances(("two-path",))[0], slots=500, seeds=64)
    got = root["metrics", "backlog"]
    assert got.mean().item() == pytest.approx(alone.backlog, abs=4 * 2**0.5 * alone.standard_error)
    assert root["metrics", "throughput"].mean().item() == pytest.approx(alone.throughput, abs=0.01)


def test_files_are_networks_too(tmp_path):
    file = write_instance(load_instances(("cross",))[0], tmp_path / "mine.json")
    env = make_env("multihop", networks=(str(file), "barabasi6"))
    assert [instance.num_nodes for instance in env.instances] == [5, 6]


def test_networks_that_are_not_there_are_named():
    with pytest.raises(ConfigError, match="two-path"):
        make_env("multihop", networks=("two-paths",))
    with pytest.raises(ConfigError, match="at least four nodes"):
        make_env("multihop", networks=("barabasi3",))
    with pytest.raises(DataError, match=r"none\.json"):
        make_env("multihop", networks=("none.json",))


def test_a_policy_of_one_set_of_networks_runs_on_another():
    small, large = (
        multihop(5, networks=("two-path", "diamond")),
        multihop(7, networks=("barabasi12*2", "cross")),
    )
    torch.manual_seed(0)
    models = [make_actor_critic(env.graph, env.actions) for env in (small, large)]
    models[1].load_state_dict(models[0].state_dict())
    for env, model in zip((small, large), models, strict=True):
        root = model.actor(env.reset())
        assert root["action"].shape == (env.num_envs, env.networks.num_links)
        assert root["action_mask"].gather(-1, root["action"].unsqueeze(-1)).all()
        assert model.critic(root)["state_value"].shape == (env.num_envs, 1)


def test_log_probabilities_of_all_choices_sum_to_one():
    env = multihop(1, networks=("two-path",))
    root = env.rollout(12, break_when_any_done=False)[:, -1]["next"]
    model = make_actor_critic(env.graph, env.actions)
    options = [mask.nonzero().flatten() for mask in root["action_mask"][0]]
    every = torch.cartesian_prod(*options)
    assert len(every) > 1
    dist = model.actor.get_dist(root.expand(len(every), 1).reshape(-1))
    assert dist.log_prob(every).exp().sum().item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("rule", ["backpressure", "spbp", "length-backpressure"])
def test_a_policy_with_a_prior_begins_as_its_rule(rule):
    env = multihop(16, prior=rule)
    config = ModelConfig(encoder=EncoderConfig(hidden=8, layers=1), policy_gain=1e-6, prior=2.0)
    actor = make_actor_critic(env.graph, env.actions, config).actor
    root, act = env.reset(), BASELINES[rule](env)
    for _ in range(12):
        root = act(root)
        with torch.no_grad():
            assert torch.equal(actor.get_dist(root).mode, root["action"])
        root = env.step_mdp(env.step(root))


def test_a_prior_needs_scores_of_the_environment():
    env = multihop(2)
    actor = make_actor_critic(env.graph, env.actions, ModelConfig(prior=1.0)).actor
    with pytest.raises(ConfigError, match="gives no action_prior"):
        actor(env.reset())


def test_each_random_network_samples_its_load():
    """Traffic of the same network is proportional to its load; a range gives loads within it."""
    names = ("barabasi8*4",)
    low, high, drawn = (
        [sum(sum(each.sources.values()) for each in one.classes) for one in load_instances(names, load=load)]
        for load in (0.5, 1.0, (0.5, 1.0))
    )
    shares = [(here - one) / (other - one) for here, one, other in zip(drawn, low, high, strict=True)]
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert max(shares) - min(shares) > 0.1
    with pytest.raises(ValueError, match="a load is above zero"):
        MultihopConfig(network_load=(0.0, 0.5))
