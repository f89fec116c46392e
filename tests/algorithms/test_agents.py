"""What the six off-policy agents share: how they act, what they learn towards, and on which device."""

import pytest
import torch
from tensordict import TensorDict
from tests.algorithms.sea import AGENTS, SEA_OF, SEAS, SLOTS, SMALL, agent, sea
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.algorithms.off_policy import OffPolicy
from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.graphs.actions import AgentsContinuous

every_agent = pytest.mark.parametrize("name", AGENTS)
ILLEGAL_TRIED = 20_000
"""Actions of each agent that are looked at here; a million in tests/learning."""


def views(*lead, slots=SLOTS):
    """What robots see."""
    entries = {
        "self": torch.randn(*lead, 7),
        "objects": torch.randn(*lead, slots, 5),
        "mask": torch.rand(*lead, slots) < 0.5,
    }
    return TensorDict(entries, lead)


def transitions(name, count=24):
    """Random samples as a replay gives them, half of them the last of their robots."""
    discrete = SEA_OF[name] == "buoys"
    entries = {
        "observation": views(count),
        "next_observation": views(count),
        "action": torch.randint(4, (count,)) if discrete else torch.rand(count, 2) * 4 - 2,
        "reward": torch.rand(count),
        "discount": 0.5 * (torch.arange(count) % 2),
        "steps": torch.ones(count, dtype=torch.int8),
        "weight": torch.ones(count),
    }
    return TensorDict(entries, [count])


def actions_of(learner, *, worlds, explores, slots=SLOTS):
    """What a policy does in `worlds` worlds, of which some robots are inactive, and which are active."""
    observed = TensorDict(
        {"agents": {"ego": views(worlds, 3, slots=slots), "active": torch.rand(worlds, 3) < 0.6}}, [worlds]
    )
    mode = ExplorationType.RANDOM if explores else ExplorationType.DETERMINISTIC
    with set_exploration_type(mode):
        return learner.policy(observed)["action"], observed["agents", "active"]


def illegal(action, layout):
    """How many actions no environment of this layout would take."""
    if isinstance(layout, AgentsContinuous):
        inside = (action >= layout.low) & (action <= layout.high)
        return int((~inside).any(-1).sum())
    return int(((action < 0) | (action >= layout.num_actions)).sum())


@every_agent
@pytest.mark.parametrize("encoder", ["flat", "graph"])
def test_no_action_is_illegal_and_who_is_inactive_idles(name, encoder):
    learner = agent(name, model=SMALL.model_copy(update={"encoder": encoder}))
    layout = SEAS[SEA_OF[name]].layout
    for _ in range(5):
        learner.update(transitions(name))
    for explores in (True, False):
        action, active = actions_of(learner, worlds=ILLEGAL_TRIED // 12, explores=explores)
        assert illegal(action, layout) == 0
        assert (action[~active] == 0).all()
        assert not explores or action[active].any()


@every_agent
@pytest.mark.parametrize("encoder", ["flat", "graph"])
def test_nobody_active_is_no_trouble(name, encoder):
    learner = agent(name, model=SMALL.model_copy(update={"encoder": encoder}))
    nobody = TensorDict({"agents": {"ego": views(4, 3), "active": torch.zeros(4, 3, dtype=torch.bool)}}, [4])
    with set_exploration_type(ExplorationType.RANDOM):
        action = learner.policy(nobody)["action"]
    assert action.shape[:2] == (4, 3)
    assert not action.any()


@every_agent
def test_it_is_deterministic_where_it_does_not_explore_and_only_there(name):
    learner, ego = agent(name, epsilon=0.5), views(50)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        assert torch.equal(learner.explore(ego), learner.explore(ego))
    with set_exploration_type(ExplorationType.RANDOM):
        assert not torch.equal(learner.explore(ego), learner.explore(ego))


@pytest.mark.parametrize("name", ["rainbow", "sac"])
def test_some_explore_by_themselves(name):
    learner, ego = agent(name, epsilon=0.0), views(200)
    with set_exploration_type(ExplorationType.RANDOM):
        assert not torch.equal(learner.act(ego), learner.act(ego))


@every_agent
def test_a_forward_for_all_is_the_same_as_one_for_each(name):
    learner, ego = agent(name), views(6, 3)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        together = learner.act(ego)
        torch.testing.assert_close(learner.act(ego[4, 2]), together[4, 2])


@every_agent
def test_what_ended_has_the_target_of_its_reward_alone(name):
    """And what has not, time-outs included, has more: the value of what follows."""
    learner, samples = agent(name), transitions(name, 400)
    target = learner.target(samples)
    if name == "rainbow":
        target = (target * learner.support).sum(-1)
    reward = samples["reward"] if target.dim() == 1 else samples["reward"].unsqueeze(-1)
    ended = samples["discount"] == 0
    torch.testing.assert_close(target[ended], reward.expand_as(target)[ended], atol=1e-5, rtol=1e-5)
    assert not torch.isclose(target, reward.expand_as(target))[~ended].all()


@every_agent
def test_no_gradient_ever_reaches_a_target(name):
    """Nor is any graph built on the way to it, by whichever network."""
    learner, samples = agent(name), transitions(name)
    built = []
    hooks = [
        module.register_forward_hook(lambda *_: built.append(torch.is_grad_enabled()))
        for module in (*learner.networks.modules(), *learner.targets.modules())
    ]
    assert not learner.target(samples).requires_grad
    assert built
    assert not any(built)
    for hook in hooks:
        hook.remove()
    before = [parameter.clone() for parameter in learner.targets.parameters()]
    _, error = learner.update(samples)
    assert all(parameter.grad is None for parameter in learner.targets.parameters())
    assert all(map(torch.equal, before, learner.targets.parameters()))
    assert error.shape == (24,)
    assert (error >= 0).all()
    assert not error.requires_grad


@every_agent
def test_every_network_moves_by_its_own_loss(name):
    learner = agent(name)
    before = {key: value.clone() for key, value in learner.networks.state_dict().items()}
    metrics, _ = learner.update(transitions(name))
    after = learner.networks.state_dict()
    moved = {key.split(".")[0] for key, value in before.items() if not torch.equal(value, after[key])}
    assert moved == {part for part, _ in learner.networks.named_children()}
    assert all(value.dim() == 0 and not value.requires_grad for value in metrics.values())


@pytest.mark.parametrize("name", ["ddpg", "ac-iqn", "sac"])
def test_the_actor_climbs_the_critic_and_does_not_move_it(name):
    """With all other steps held at zero the critic stays as it is, and the actor's loss falls."""
    learner, samples = agent(name), transitions(name)
    part = "critics" if name == "sac" else "critic"
    for held in learner.optimizers.keys() - {"actor"}:
        learner.optimizers[held].param_groups[0]["lr"] = 0.0
    before = [parameter.clone() for parameter in learner.networks[part].parameters()]
    losses = [learner.update(samples)[0]["actor_loss"].item() for _ in range(60)]
    assert all(map(torch.equal, before, learner.networks[part].parameters()))
    assert sum(losses[-10:]) < sum(losses[:10])


@every_agent
def test_weights_of_samples_weigh(name):
    learner, samples = agent(name), transitions(name)
    samples["weight"] = torch.zeros(24)
    metrics, error = learner.update(samples)
    assert metrics["loss"] == 0
    assert error.sum() > 0


@every_agent
def test_cloning_leads_to_what_was_done(name):
    learner, samples = agent(name, epsilon=0.0), transitions(name, 64)
    wanted = samples["action"] if SEA_OF[name] == "buoys" else samples["action"].clamp(-1, 1)
    samples["action"] = wanted
    for _ in range(150):
        for part, loss in learner.imitation_loss(samples).items():
            learner.optimizer_step(part, loss)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        action = learner.act(samples["observation"])
    if SEA_OF[name] == "buoys":
        assert (action == wanted).float().mean() > 0.9
    else:
        assert (action - wanted).abs().mean() < 0.25


@every_agent
@pytest.mark.parametrize("encoder", ["flat", "graph"])
def test_an_update_on_another_device(fake_device, monkeypatch, name, encoder):
    """Nothing mixes devices and nothing waits for a value; seeds alone are drawn on the host."""
    monkeypatch.setattr(OffPolicy, "_next_seed", lambda _: 0)
    monkeypatch.setattr("edgewise.algorithms.off_policy.ReplayBuffer", lambda *_, **__: None)
    learner = agent(name, model=SMALL.model_copy(update={"encoder": encoder}), device=fake_device)
    metrics, error = learner.update(transitions(name).to(fake_device))
    learner._update_targets()
    assert error.device == fake_device
    assert all(value.device == fake_device for value in metrics.values())
    observed = {"agents": {"ego": views(8, 3), "active": torch.rand(8, 3) < 0.6}}
    acted = learner.policy(TensorDict(observed, [8]).to(fake_device))
    assert acted["action"].device == fake_device
    assert acted["action"].shape[:2] == (8, 3)


@pytest.mark.parametrize("name, other", [("dqn", "rudders"), ("rainbow", "rudders"), ("sac", "buoys")])
def test_actions_of_the_wrong_kind_are_refused_with_a_way_out(name, other, monkeypatch):
    monkeypatch.setitem(SEA_OF, name, other)
    with pytest.raises(ConfigError, match="actions") as refused:
        agent(name)
    assert "use an environment with" in refused.value.hint


@every_agent
def test_a_rollout_leads_to_updates_and_finite_numbers(name):
    learner = agent(name)
    env = sea(SEA_OF[name], num_envs=8)
    rollout = Rollout(env, learner.policy, rollout_length=16)
    for _ in range(2):
        batch = rollout.collect()
        assert batch["next", "reward"].isfinite().all()
        metrics = learner.learn(batch)
    assert metrics["updates"] > 0
    assert all(value.isfinite() for value in metrics.values())


@pytest.mark.parametrize("name", ["iqn", "ac-iqn", "rainbow"])
def test_distributional_agents_say_what_they_expect_of_what_they_do(name):
    learner, seen = agent(name), views(50)
    quantiles = learner.policy.return_quantiles(seen)
    assert quantiles.shape == (50, 32)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        action = learner.act(seen)
    assert torch.allclose(quantiles.mean(-1), mean_return(name, learner, seen, action), atol=0.05)


def mean_return(name, learner, seen, action):
    """The mean return of each action, otherwise."""
    if name == "ac-iqn":
        levels = (torch.arange(500) + 0.5) / 500
        return learner.networks["critic"](seen, learner.box.to_unit(action), levels).mean(-1)
    rows = torch.arange(len(action))
    if name == "rainbow":
        return (learner.networks["network"](seen, "none").softmax(-1) @ learner.support)[rows, action]
    return learner.networks["network"](seen, (torch.arange(500) + 0.5) / 500).mean(-2)[rows, action]


@pytest.mark.parametrize("name", ["dqn", "ddpg", "sac"])
def test_others_know_means_alone(name):
    assert agent(name).policy.return_quantiles(views(2)) is None


@every_agent
def test_every_number_that_a_schedule_may_move_is_read_after_it_has_moved(name):
    """A number that is only read while the agent is built would be scheduled without any effect."""
    learner = agent(name, cloning_coefficient=0.1)
    read = set()

    class Watched(type(learner.config)):
        def __getattribute__(self, field):
            read.add(field)
            return super().__getattribute__(field)

    risk = {"risk": "adaptive"} if "risk" in type(learner.config).model_fields else {}
    learner.config = Watched.model_validate(learner.config.model_dump() | risk)
    learner.set_scalar("learning_rate", 1e-3)
    learner.learn(Rollout(sea(SEA_OF[name]), learner.policy, rollout_length=8).collect())
    actions_of(learner, worlds=8, explores=False)
    read_by_the_collector = {"expert_share"}
    assert set(learner.scalars()) - set(learner.config.fixed) - read_by_the_collector <= read


@pytest.mark.parametrize(
    ("name", "number"),
    [("rainbow", "sigma"), ("rainbow", "v_min"), ("sac", "initial_temperature"), ("dqn", "gamma")],
)
def test_numbers_that_are_built_in_cannot_be_scheduled(name, number):
    learner = agent(name)
    learner.set_scalar(number, getattr(learner.config, number))
    with pytest.raises(ValueError, match=f"{number} is fixed and cannot change"):
        learner.set_scalar(number, getattr(learner.config, number) / 2)
