"""The base of off-policy agents: when it updates, on what, how it explores, and that it resumes exactly."""

import pytest
import torch
from safetensors.torch import load, save
from tests.algorithms.robots import DISCRETE, OFF_POLICY, agent, observed, simple
from tests.data.robots import played
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.runs.checkpoint.serialise import flatten, unflatten


def batch(seed=0, *, discrete=True, **sizes):
    return played(seed, slots=5, discrete=discrete, **sizes)


def test_updates_follow_transitions_and_fractions_are_carried():
    algorithm = simple(updates_per_transition=0.037)
    transitions = updates = 0
    for seed in range(12):
        told = algorithm.learn(batch(seed))
        transitions += int(told["transitions"])
        updates += int(told["updates"])
        assert told["transitions"] == batch(seed)["agents", "active"].sum()
        assert updates == int(transitions * 0.037 + 1e-9) == algorithm.updates
    assert algorithm.frames == 12 * 24


def test_nothing_is_learnt_before_its_time():
    algorithm = simple(learning_starts=49)
    for seed in range(2):
        told = algorithm.learn(batch(seed))
        assert told.keys() == {"transitions", "stored", "updates"}
        assert told["updates"] == 0
    told = algorithm.learn(batch(2))
    assert told["updates"] == int(told["transitions"] * 0.1)


def test_nothing_is_learnt_from_less_than_a_minibatch():
    algorithm = simple(minibatch_size=32)
    assert algorithm.learn(batch(0, steps=3))["updates"] == 0
    assert algorithm.learn(batch(1))["updates"] > 0


def test_an_update_gets_what_was_stored_with_its_discount():
    algorithm = simple(n_step=3, gamma=0.9)
    algorithm.learn(batch())
    samples = torch.cat(algorithm.seen)
    assert set(samples.keys()) >= {
        "observation",
        "next_observation",
        "action",
        "reward",
        "discount",
        "steps",
        "weight",
    }
    ended = samples["discount"] == 0
    assert ended.any()
    assert torch.allclose(samples["discount"][~ended], 0.9 ** samples["steps"][~ended])


def test_targets_move_by_tau_every_so_many_updates():
    algorithm = simple(tau=0.25, target_interval=2, updates_per_transition=0.0)
    algorithm.learn(batch())
    before = [value.clone() for value in algorithm.targets.parameters()]
    algorithm._update()
    assert all(torch.equal(*pair) for pair in zip(before, algorithm.targets.parameters(), strict=True))
    algorithm._update()
    pairs = zip(before, algorithm.networks.parameters(), algorithm.targets.parameters(), strict=True)
    assert all(torch.allclose(now, 0.75 * old + 0.25 * own, atol=1e-7) for old, own, now in pairs)
    assert not any(parameter.requires_grad for parameter in algorithm.targets.parameters())


def test_tau_one_copies():
    algorithm = simple(tau=1.0)
    algorithm.learn(batch())
    pairs = zip(algorithm.networks.parameters(), algorithm.targets.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_descending_clips_and_leaves_other_networks_alone():
    algorithm = simple(max_grad_norm=1e-3)
    spare = algorithm.networks["spare"]
    weight = algorithm.networks["network"].choices.weight
    norm = algorithm.optimizer_step("network", 1e3 * (weight.sum() + spare.weight.sum()))
    assert norm > 1
    assert weight.grad.norm() <= 1e-3 + 1e-6
    assert spare.weight.grad is None


def test_epsilon_is_the_share_at_random_while_exploring_alone():
    algorithm = simple(epsilon=0.4)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        greedy = algorithm.policy(observed(2000))["action"]
    assert torch.equal(greedy, algorithm.act(observed(2000)["agents", "ego"]).reshape(2000, 3))
    with set_exploration_type(ExplorationType.RANDOM):
        explored = algorithm.policy(observed(2000))["action"]
    share = (explored != greedy).float().mean()
    assert abs(share - 0.4 * 24 / 25) < 0.03
    assert explored.unique().tolist() == list(range(25))


@pytest.mark.parametrize("name", OFF_POLICY)
def test_actions_fit_the_layout_whatever_is_explored(name):
    algorithm = agent(name)
    shape = (1000, 3) if name in DISCRETE else (1000, 3, 2)
    for kind in (ExplorationType.RANDOM, ExplorationType.DETERMINISTIC):
        with set_exploration_type(kind):
            action = algorithm.policy(observed(1000))["action"]
        assert action.shape == shape
        low, high = (0, 24) if name in DISCRETE else (-1, 1)
        assert (action >= low).all()
        assert (action <= high).all()


def test_scheduled_numbers_take_effect():
    algorithm = simple(prioritised=True)
    for name, value in {"epsilon": 0.5, "beta": 0.9, "learning_rate": 1e-2, "target_interval": 7.6}.items():
        algorithm.set_scalar(name, value)
    assert algorithm.config.epsilon == 0.5
    assert algorithm.config.target_interval == 8
    assert algorithm.replay_buffer.beta == 0.9
    assert all(group["lr"] == 1e-2 for one in algorithm.optimizers.values() for group in one.param_groups)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epsilom", 0.5, "Simple has no numeric setting 'epsilom'"),
        ("gamma", 0.5, "gamma is fixed and cannot change"),
        ("prioritised", 1, "no numeric setting 'prioritised'"),
        ("epsilon", 2, "less than or equal to 1"),
    ],
)
def test_numbers_that_cannot_be_scheduled_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        simple().set_scalar(name, value)


def test_cloning_draws_the_policy_to_what_was_done():
    algorithm = simple(cloning_coefficient=1.0, learning_rate=1e-2, updates_per_transition=1.0, gamma=0.0)
    wanted = batch()
    for _ in range(6):
        metrics = algorithm.learn(wanted)
    assert metrics["cloning_network"].isfinite()
    active = wanted["agents", "active"]
    ego = wanted["agents", "ego"]
    ego.batch_size = active.shape
    match = (algorithm.act(ego) == wanted["action"])[active].float().mean()
    assert match > 0.5


def test_the_loss_of_cloning_has_its_weight(monkeypatch):
    """Adam hides the scale of a loss that is the only one, so the loss itself is compared."""
    algorithm, losses = simple(cloning_coefficient=0.25), []
    step = algorithm.optimizer_step
    monkeypatch.setattr(
        algorithm, "optimizer_step", lambda part, loss: losses.append(loss.item()) or step(part, loss)
    )
    while not losses:
        metrics = algorithm.learn(batch(steps=4))
    assert losses[-1] == pytest.approx(0.25 * float(metrics["cloning_network"]))


def test_learning_draws_from_its_own_seed_and_leaves_torchs_alone():
    one, other = simple(), simple()
    torch.manual_seed(1)
    first = one.learn(batch())
    expected = torch.Generator().manual_seed(1)
    assert torch.equal(torch.rand(3), torch.rand(3, generator=expected))
    second = other.learn(batch())
    assert {name: value.item() for name, value in first.items()} == {
        name: value.item() for name, value in second.items()
    }


def resumed(first, second, *, discrete):
    """Whether two agents go on alike for five batches, and end with equal states."""
    equal = True
    for seed in range(10, 15):
        one, other = (algorithm.learn(batch(seed, discrete=discrete)) for algorithm in (first, second))
        equal &= {key: value.item() for key, value in one.items()} == {
            key: value.item() for key, value in other.items()
        }
    (one, left), (other, right) = (flatten(algorithm.state_dict()) for algorithm in (first, second))
    return equal and one == other and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("name", OFF_POLICY)
def test_it_goes_on_bit_for_bit_from_a_saved_state(name, prioritised):
    first, second = (agent(name, seed=seed, n_step=3, prioritised=prioritised) for seed in range(2))
    for seed in range(4):
        first.learn(batch(seed, discrete=name in DISCRETE))
    skeleton, tensors = flatten(first.state_dict())
    second.load_state_dict(unflatten(skeleton, load(save(tensors))))
    assert resumed(first, second, discrete=name in DISCRETE)


def test_a_state_without_targets_gives_targets_equal_to_the_networks():
    first, second = (simple(seed=seed) for seed in range(2))
    first.learn(batch(0))
    state = first.state_dict()
    del state["targets"]
    second.load_state_dict(state)
    pairs = zip(first.networks.parameters(), second.targets.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


PLANTS = {
    "no moments": lambda state: state["optimizer"].clear(),
    "no targets": lambda state: state.__setitem__("targets", state["networks"]),
    "nothing waiting": lambda state: state["transitions"].clear(),
    "another seed": lambda state: state["generator"].copy_(torch.Generator().manual_seed(9).get_state()),
    "nothing pending_updates": lambda state: state["counts"].__setitem__("pending_updates", 0.0),
    "no priorities": lambda state: state["replay_buffer"]["sampler"]["priorities"].fill_(1.0),
    "another count": lambda state: state["counts"].__setitem__("updates", 0),
    "another learning rate": lambda state: state["scalars"].__setitem__("learning_rate", 1e-3),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_whatever_is_not_kept_would_show(plant):
    first, second = (simple(seed=seed, n_step=3, prioritised=True, target_interval=5) for seed in range(2))
    for seed in range(4):
        first.learn(batch(seed))
    state = first.state_dict()
    PLANTS[plant](state)
    second.load_state_dict(state)
    assert not resumed(first, second, discrete=True)
