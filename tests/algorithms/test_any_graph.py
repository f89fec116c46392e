"""Off-policy algorithms on whole graphs: a tenth of the matrix, other team sizes, games, copies, teams."""

import copy

import pytest
import torch
from benchmarks.matrix import outcome
from tests.algorithms.sea import SMALL, sea
from tests.algorithms.tables import MODEL, make_env, make_learner
from torchrl.envs import ExplorationType, set_exploration_type

import edgewise as ew
from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.off_policy_config import DQNConfig, IQNConfig, SACConfig
from edgewise.algorithms.registry import algorithm_class
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.envs.policy import acting_in
from edgewise.evaluation.evaluate import evaluate
from edgewise.runs.checkpoint import contents, store

QUICK = {"minibatch_size": 16, "replay_size": 500, "learning_starts": 0, "updates_per_transition": 0.05}
WORKS = [
    ("graphwalk", "dqn", {}),
    ("graphwalk", "sac", {}),
    ("hex", "rainbow", {"env.size": 3}),
    ("multihop", "iqn", {}),
    ("swarm", "rainbow", {}),
    ("swarm", "ddpg", {"env.continuous": True}),
    ("swarm", "iqn", {"model.recurrent": True}),
    ("multihop", "clone", {}),
    ("queueing", "reinforce", {}),
]
REFUSED = [
    ("queueing", "dqn", "the best of all sets"),
    ("swarm", "ddpg", "needs continuous actions"),
    ("marine", "dqn", "needs discrete actions"),
    ("hex", "ddpg", "a game of two players"),
    ("hex", "reinforce", "a game of two players"),
    ("swarm", "expert_iteration", "searches one choice per step"),
    ("graphwalk", "ac-iqn", "needs continuous actions"),
    ("queueing", "sac", "the best of all sets"),
]


@pytest.mark.parametrize("env, algorithm, settings", WORKS)
def test_it_builds_updates_acts_legally_and_resumes(env, algorithm, settings):
    assert outcome(env, algorithm, settings, drawn=2_000) == "works"


@pytest.mark.parametrize("env, algorithm, reason", REFUSED)
def test_what_cannot_be_learnt_is_refused_in_words(env, algorithm, reason):
    found = outcome(env, algorithm, {}, drawn=1)
    assert found.startswith("refused")
    assert reason in found


def team(agents, *, capacity=None, **settings):
    return ew.make_env("swarm", num_envs=8, seed=0, num_agents=agents, max_agents=capacity, **settings)


@pytest.mark.parametrize("name, continuous", [("dqn", False), ("sac", True)])
def test_a_team_grows_and_its_replay_is_kept(name, continuous):
    env = team(4, capacity=6, continuous=continuous)
    config = {"dqn": DQNConfig, "sac": SACConfig}[name](**QUICK)
    learner = algorithm_class(name)(deciders_of(env, MODEL), config=config)
    rollout = Rollout(env, learner.policy, rollout_length=25)
    learner.learn(rollout.collect())
    env.apply_stage(num_agents=6)
    for _ in range(2):
        batch = rollout.collect()
        metrics = learner.learn(batch)
    assert batch["agents", "active"].sum(-1).unique().tolist() == [6]
    assert metrics["stored"] == 500
    sizes = learner.replay_buffer.buffer.storage._storage["observation", "agents", "active"].sum(-1)
    assert {4, 6} <= set(sizes.tolist())


def test_a_policy_of_four_acts_in_a_team_of_six():
    env, larger = team(4), team(6)
    learner = algorithm_class("dqn")(deciders_of(env, MODEL), config=DQNConfig(**QUICK))
    with acting_in(learner.policy, larger):
        played = evaluate(larger, learner.policy, episodes=8, seed=0)
    assert len(played.returns) == 8
    assert learner.policy(env.reset())["action"].shape == (8, 4)


@pytest.mark.parametrize("kind, config", [("dqn", DQNConfig), ("iqn", IQNConfig)])
def test_the_value_of_the_other_players_position_is_negated(kind, config):
    env = ew.make_env("hex", num_envs=4, seed=0, size=3)
    learner = algorithm_class(kind)(deciders_of(env, MODEL), config=config(**QUICK, epsilon=1.0))
    learner.learn(Rollout(env, learner.policy, rollout_length=9).collect())
    samples = learner._prepare(learner._transitions.expand(learner.replay_buffer.sample()))
    discount = samples["discount"]
    assert ((discount == 0) | (discount == -0.99)).all()
    assert (discount < 0).any()
    torch.manual_seed(0)
    target = learner.target(samples)
    samples["discount"] = -discount
    torch.manual_seed(0)
    other = learner.target(samples)
    reward = samples["reward"].reshape(-1, *[1] * (target.dim() - 1))
    torch.testing.assert_close(target - reward, reward - other)


def test_a_copy_of_a_policy_keeps_its_weights_and_nothing_of_the_learner():
    env = make_env("nodes")
    learner = make_learner("dqn", env)
    twin = copy.deepcopy(learner.policy)
    assert twin._learner.replay_buffer is learner.replay_buffer
    for parameter in learner.networks.parameters():
        parameter.data.zero_()
    assert any(parameter.any() for parameter in twin.parameters())
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        assert env.actions.is_legal(twin(env.reset())["action"], env.reset(), env.graph).shape == (16,)


def test_mixing_needs_a_team():
    with pytest.raises(ConfigError, match="several deciders"):
        deciders_of(make_env("nodes"), MODEL, mixing="monotone")


def test_values_of_a_team_never_fall_with_those_of_a_member():
    """The planted fault: weights of the mixer without their absolute value."""
    learner = make_learner("dqn", make_env("pair"), mixing="monotone")
    root, mixer = make_env("pair").reset(), learner.networks["network"].mixer
    values = torch.randn(16, 2)
    more = values + torch.rand(16, 2)
    assert (mixer(more, root) >= mixer(values, root)).all()
    mixer.weight.weight.data.mul_(-1)
    mixer.weight.bias.data.mul_(-1)
    assert (mixer(more, root) >= mixer(values, root)).all()


def test_risk_by_distance_needs_distances():
    with pytest.raises(ConfigError, match="risk: adaptive"):
        algorithm_class("iqn")(deciders_of(make_env("nodes"), MODEL), config=IQNConfig(risk="adaptive"))


@pytest.mark.parametrize("mixing", ["none", "sum", "monotone"])
@pytest.mark.parametrize("observe", ["ego", "graph", "both"])
def test_agents_read_their_own_view_the_graph_or_both(observe, mixing):
    """A forbidden action of the toy earns NaN, and so does an inactive agent that does not idle."""
    env = sea("buoys", num_envs=8)
    model = MODEL.model_copy(update={"observe": observe, "ego": SMALL})
    learner = algorithm_class("dqn")(
        deciders_of(env, model, mixing=mixing), config=DQNConfig(**QUICK, mixing=mixing, n_step=2)
    )
    rollout = Rollout(env, learner.policy, rollout_length=16)
    for _ in range(2):
        batch = rollout.collect()
        metrics = learner.learn(batch)
    assert metrics["updates"] > 0
    assert batch["next", "reward"].isfinite().all()
    assert all(value.isfinite() for value in metrics.values())
    assert metrics["value"].abs() < 100


@pytest.mark.parametrize(
    "name, mixing", [("nodes", "none"), ("pair", "none"), ("pair", "sum"), ("pair", "monotone")]
)
def test_retrace_resumes_and_is_the_one_step_target_without_trace(name, mixing):
    """With λ = 0, only the first reward and the best value after it count."""
    env = make_env(name)
    settings = {"mixing": mixing, "double": False, "updates_per_transition": 0.05}
    first, second = (make_learner("dqn retrace", env, **settings) for _ in range(2))
    rollout = Rollout(env, first.policy, rollout_length=6)
    first.learn(rollout.collect())
    assert second.transition_bytes(rollout.collect()) == first.replay_buffer.bytes_per_transition
    second.load_state_dict(first.state_dict())
    batch = rollout.collect()
    one, other = first.learn(batch.clone()), second.learn(batch.clone())
    assert {key: value.item() for key, value in one.items()} == {
        key: value.item() for key, value in other.items()
    }
    samples = first._prepare(first._transitions.expand(first.replay_buffer.sample()))
    first.set_scalar("retrace", 0.0)
    found, after = first.target(samples), samples["path", "observation"][:, 0]
    with torch.no_grad():
        network = first.targets["network"]
        best = network.joint(network(after).amax(-1), after)
    going, reward = samples["steps"] > 1, samples["rewards"][:, 0]
    if name == "pair" and mixing == "none":
        best = best.masked_fill(~after["agents", "active"], 0.0)
        going = going & samples["observation", "agents", "active"].all(-1)
    torch.testing.assert_close(found[going], (reward + 0.6 * best)[going])


def test_retrace_and_dueling_are_refused_where_they_have_no_meaning():
    with pytest.raises(ValueError, match="n_step of 2 or more"):
        DQNConfig(retrace=0.9)
    agents = deciders_of(sea("buoys", num_envs=8), SMALL, paths=True)
    with pytest.raises(ConfigError, match="steps of whole worlds"):
        algorithm_class("dqn")(agents, config=DQNConfig(n_step=3, retrace=0.9))
    with pytest.raises(ConfigError, match="continuous"):
        algorithm_class("sac")(deciders_of(team(3, continuous=True), MODEL), config=SACConfig(dueling=True))


@pytest.mark.thorough
@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_a_run_of_four_agents_goes_on_with_six(algorithm, tmp_path):
    """The resumed run keeps what it stored with four agents and goes on with six."""
    run, stages = tmp_path / "run", '[{"name": "six", "env": {"num_agents": 6}}]'
    small = [
        "--num-agents",
        "4",
        "--env.max-agents",
        "6",
        "--env.max-steps",
        "5",
        "--num-envs",
        "8",
        "--rollout-length",
        "5",
    ]
    small += ["--evaluation.episodes", "2", "--model.encoder.hidden", "8", "--model.encoder.layers", "1"]
    small += [
        "--model.encoder.heads",
        "2",
        "--minibatch-size",
        "16",
        "--total-frames",
        "200",
        "--replays",
        "0",
    ]
    if algorithm == "dqn":
        small += ["--algorithm.learning-starts", "0", "--algorithm.replay-size", "1000"]
    assert main(["train", "swarm", "--algorithm", algorithm, "--out", str(run), *small]) == 0
    seven = stages.replace("6", "7")
    assert main(["resume", str(run), "--total-frames", "400", "--curriculum", seven]) == 2
    assert main(["resume", str(run), "--total-frames", "400", "--curriculum", stages]) == 0
    parts = contents.read(store.latest(run / "checkpoints"), None)
    assert parts["trainer"]["curriculum"] == {"stage": "six", "since": 200, "newest": {}}
    if algorithm == "dqn":
        active = parts["data"]["replay_buffer"]["stored"]["observation.agents.active"]
        assert active.sum(-1)[:200].unique().tolist() == [4]
        assert active.sum(-1)[240:].unique().tolist() == [6]


def test_a_run_without_room_for_more_agents_names_the_remedy(tmp_path, capsys):
    assert main(["resume", str(tmp_path), "--num-agents", "6"]) == 2
    message = capsys.readouterr().err
    assert "--num-agents: a run continues with its own settings" in message
    assert "env.max_agents" in message
    with pytest.raises(ConfigError, match="room for 4") as refused:
        team(4).apply_stage(num_agents=6)
    assert "max_agents=6" in str(refused.value.hint)
