"""Decodings against brute force on instances small enough for it, and what each of them promises."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.algorithms.picking import NODES, SMALL, orders, picking, worth_of
from tests.algorithms.worlds import toy
from tests.evaluation.worlds import Countdown, always

import edgewise as ew
from edgewise.cli.main import main
from edgewise.config.decoding import Decoding
from edgewise.config.errors import ConfigError
from edgewise.data.random_policy import RandomPolicy
from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.result import Evaluation
from edgewise.models.actor_critic import make_actor_critic

EPISODES = 10


def actor_for(env, *, seed=3):
    torch.manual_seed(seed)
    return make_actor_critic(env.graph, env.actions, SMALL).actor


def decoded(how, *, env=None, policy=None, episodes=EPISODES, seed=5, **settings):
    env = picking(num_envs=episodes, **settings) if env is None else env
    policy = actor_for(env) if policy is None else policy
    return evaluate(
        env, policy, episodes=episodes, seed=seed, decode=None if how is None else Decoding.parse(how)
    )


def worths(*, episodes=EPISODES, seed=5, **settings):
    """The worth of every node `[E, N]` and the number of picks `[E]` of the instances of a seed."""
    env = picking(num_envs=episodes, **settings)
    env.set_seed(seed)
    state = env.reset()["state"]
    return state["worth"], state["left"].tolist()


def brute_force(**settings):
    worth, picks = worths(**settings)
    return [
        max(worth_of(order, row) for order in orders(count)) for row, count in zip(worth, picks, strict=True)
    ]


@pytest.mark.parametrize("how", ["greedy", "beam:1"])
def test_a_beam_of_one_is_greedy_and_greedy_is_the_mode(how):
    found, mode = decoded(how), decoded(None)
    np.testing.assert_array_equal(found.returns, mode.returns)
    np.testing.assert_array_equal(found.lengths, mode.lengths)
    np.testing.assert_array_equal(found.metrics["picks"], mode.metrics["picks"])
    assert (found.decode, found.trajectories, mode.decode) == (how, 1, None)
    assert len(set(mode.lengths)) > 1, "episodes must end at different times for this test to say anything"


def test_a_beam_that_is_wide_enough_finds_the_optimum():
    found = decoded("beam:24")
    np.testing.assert_allclose(found.returns, brute_force(), rtol=1e-5)
    assert found.trajectories == 24
    assert (decoded(None).returns < found.returns - 1e-6).any()
    assert found.lengths.tolist() == worths()[1]


@pytest.mark.parametrize("width", [2, 3, 5])
def test_a_beam_keeps_the_most_probable_beginnings(width):
    """Against a beam of lists over the actor's own probabilities, one instance at a time."""
    env = picking(num_envs=EPISODES, picks=3)
    actor = actor_for(env)
    found = decoded(f"beam:{width}", env=env, policy=actor)
    env.set_seed(5)
    roots = env.reset()
    for instance in range(EPISODES):
        beam = [(0.0, 0.0, roots[instance : instance + 1])]
        for _ in range(3):
            grown = []
            for log_prob, total, root in beam:
                dist = actor.get_dist(root)
                for node in root["action_mask"][0].nonzero().flatten().tolist():
                    action = torch.tensor([node])
                    after = env.simulate(root.copy().set("action", action))
                    score = log_prob + dist.log_prob(action).item()
                    grown.append((score, total + float(after["reward"]), after))
            beam = sorted(grown, key=lambda entry: -entry[0])[:width]
        assert found.returns[instance] == pytest.approx(
            max(total for _, total, _ in beam), rel=1e-5, abs=1e-5
        )


def test_more_samples_are_never_worse_on_the_same_instances():
    found = [decoded(f"sample:{count}").returns for count in (1, 2, 7, 30, 60)]
    for fewer, more in pairwise(found):
        assert (more >= fewer).all()
    assert (found[-1] > found[0]).any()
    assert (found[-1] <= np.array(brute_force()) + 1e-5).all()
    np.testing.assert_array_equal(decoded("sample:7").returns, found[2])


def test_samples_beyond_one_pass_are_new(monkeypatch):
    """Passes have their own seeds: with one copy per pass, ten passes are not the same sample ten times."""
    monkeypatch.setattr("edgewise.evaluation.decoding.WORLDS", 1)
    one, ten = (decoded(f"sample:{count}") for count in (1, 10))
    assert (ten.returns >= one.returns).all()
    assert (ten.returns > one.returns).sum() >= 5


def test_a_multistart_plays_greedily_after_every_first_action():
    env = picking(num_envs=EPISODES)
    actor = actor_for(env)
    found = decoded("multistart", env=env, policy=actor)
    assert found.trajectories == NODES
    env.set_seed(5)
    roots = env.reset()
    for instance in range(EPISODES):
        totals = []
        for node in range(NODES):
            root, total, action = roots[instance : instance + 1], 0.0, torch.tensor([node])
            while not root["done"].all():
                root = env.simulate(root.copy().set("action", action))
                total += float(root["reward"])
                if not root["done"].all():
                    action = actor.get_dist(root).mode
            totals.append(total)
        assert found.returns[instance] == pytest.approx(max(totals), rel=1e-5, abs=1e-5)


def test_first_actions_are_legal_and_the_most_probable_come_first(monkeypatch):
    env = picking(num_envs=EPISODES, picks=2)
    actor, tried = actor_for(env), []
    simulate = env.simulate

    def watched(root):
        tried.append(
            (
                root["state", "step"].clone(),
                root["action"].clone(),
                env.actions.is_legal(root["action"], root, env.graph),
            )
        )
        return simulate(root)

    monkeypatch.setattr(env, "simulate", watched)
    found = decoded("multistart:2", env=env, policy=actor)
    assert found.trajectories == 2
    assert all(legal.all() for _, _, legal in tried)
    first = torch.stack([action for step, action, _ in tried if (step == 0).all()]).view(2, EPISODES)
    env.set_seed(5)
    log_prob = actor.get_dist(env.reset()).logits
    assert torch.equal(first.T, log_prob.topk(2).indices)
    assert (decoded("multistart:2").returns >= decoded("multistart:1").returns).all()
    np.testing.assert_array_equal(decoded("multistart:1").returns, decoded("greedy").returns)


@pytest.mark.parametrize("how", ["sample:3", "multistart", "beam:2"])
def test_randomness_outside_is_left_alone_and_results_repeat(how):
    torch.manual_seed(9)
    before = torch.get_rng_state()
    env = picking(num_envs=EPISODES)
    state = env.generator.get_state()
    one = decoded(how, env=env, policy=actor_for(env))
    torch.manual_seed(9)
    two = decoded(how, env=env, policy=actor_for(env))
    np.testing.assert_array_equal(one.returns, two.returns)
    assert torch.equal(env.generator.get_state(), state)
    torch.manual_seed(9)
    assert torch.equal(torch.get_rng_state(), before)


def test_agents_are_decoded_by_the_return_of_the_team():
    env = toy("signals", num_envs=6)
    one, many = (decoded(f"sample:{count}", env=env, episodes=6) for count in (1, 12))
    assert (many.returns >= one.returns).all()
    assert many.agent_returns.shape == (6, 3)
    np.testing.assert_allclose(np.nanmean(many.agent_returns, -1), many.returns)


def test_what_does_not_fit_is_refused_in_words():
    team = toy("signals", num_envs=2)
    for how in ("beam:2", "multistart"):
        with pytest.raises(ConfigError, match="AgentsDiscrete in signals cannot be listed"):
            decoded(how, env=team, episodes=2)
    env = picking(num_envs=2)
    with pytest.raises(ConfigError, match="no probabilities"):
        decoded("beam:2", env=env, policy=RandomPolicy(env.actions, env.graph), episodes=2)
    game = ew.make_env("hex", num_envs=2, seed=0)
    with pytest.raises(ConfigError, match="a game of two players"):
        decoded("sample:2", env=game, policy=RandomPolicy(game.actions, game.graph), episodes=2)
    with pytest.raises(ConfigError, match="needs a GraphEnv"):
        evaluate(Countdown, always(2), episodes=2, seed=0, decode=Decoding("sample", 2))


@pytest.mark.parametrize(
    "text",
    ["", "sample", "sample:", "sample:0", "sample:-1", "sample:1.5", "greedy:2", "beam", "beam:٣", "topk:3"],
)
def test_unknown_forms_are_refused(text):
    with pytest.raises(ConfigError, match=r"--decode: got .*expected greedy, sample:N"):
        Decoding.parse(text, field="--decode")


@pytest.mark.parametrize("text", ["greedy", "sample:64", "multistart", "multistart:8", "beam:3"])
def test_forms_are_read_and_written(text):
    assert str(Decoding.parse(text)) == text


@pytest.mark.parametrize(
    ("how", "each"), [("greedy", 1), ("sample:7", 7), ("multistart:3", 3), ("beam:4", 4)]
)
def test_progress_counts_every_episode_once_and_ends_with_all(monkeypatch, how, each):
    monkeypatch.setattr("edgewise.evaluation.decoding.WORLDS", 2 * EPISODES)
    reports = []
    env = picking(num_envs=EPISODES)
    decode = Decoding.parse(how)
    silent = evaluate(env, actor_for(env), episodes=EPISODES, seed=5, decode=decode)
    found = evaluate(
        env,
        actor_for(env),
        episodes=EPISODES,
        seed=5,
        decode=decode,
        progress=lambda *report: reports.append(report),
    )
    np.testing.assert_array_equal(found.returns, silent.returns)
    done, total = [report[0] for report in reports], {report[1] for report in reports}
    assert total == {each * EPISODES}
    assert done == sorted(done)
    assert done[-1] == each * EPISODES


def test_a_decoding_survives_the_disk(tmp_path):
    found = decoded("sample:3")
    loaded = Evaluation.load(found.save(tmp_path / "one.json"))
    assert (loaded.decode, loaded.trajectories) == ("sample:3", 3)
    old = found.to_json()
    del old["decode"], old["trajectories"]
    assert Evaluation.from_json(old).trajectories == 1


def test_the_verb_states_instances_and_budget(tmp_path, capsys):
    run = ew.train(
        "graphwalk",
        folder=tmp_path / "run",
        progress=False,
        algorithm="reinforce",
        training={"total_frames": 64, "num_envs": 8, "rollout_length": 4},
        model={"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
        evaluation={"every": None, "episodes": 4},
        logging={"tensorboard": False, "replays": 0},
    )
    assert (
        main(["eval", str(run), "--decode", "sample:5", "--episodes", "6", "--baselines", "all", "--json"])
        == 0
    )
    ours, *others = json.loads(capsys.readouterr().out)["results"]
    assert (ours["decode"], ours["trajectories"], ours["episodes"]) == ("sample:5", 5, 6)
    assert all("decode" not in other for other in others)
    assert main(["eval", str(run), "--decode", "beam:3", "--episodes", "6"]) == 0
    text = capsys.readouterr().out
    assert "run, beam:3" in text
    assert "beam:3: 6 instances of seed 1000003, the best of 3 episodes of each by return" in text
    assert ours["measures"]["return"]["mean"] == pytest.approx(
        run.evaluate(decode="sample:5", episodes=6).returns.mean(), rel=1e-6
    )
    assert main(["eval", str(run), "--decode", "beam"]) == 2
    assert main(["eval", str(run), "--decode", "sample:2", "--stochastic"]) == 2
    assert "--stochastic has no effect" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="decode: got sample:2 with sampled actions"):
        ew.evaluate(run, decode="sample:2", deterministic=False)
