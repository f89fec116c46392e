"""The environment: what is paid, who is false, what ends how, fixed lists, depths of proofs, the cache."""

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv
from edgewise.envs.contract import check_graph_env
from edgewise.envs.registry import make_env
from edgewise.graphs.actions import ChooseFromSet
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import ModelConfig
from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.actions import ChooseSuccessor
from edgewise.systems.reasoning.corruption import Corruption
from edgewise.systems.reasoning.engine import oracle
from edgewise.systems.reasoning.engine.expansion_cache import ExpansionCache
from edgewise.systems.reasoning.engine.successors import Successors
from edgewise.systems.reasoning.knowledge.dataset import load_dataset

TABLE = [  # true positive, false negative, false positive, true negative, and the same given up
    (1.0, 0.0, 0.0, 0.0, 0.0),
    (1.0, 0.0, -1.0, 0.0, 0.0),
    (1.0, 0.0, 0.0, 1.0, 1.0),
    (1.0, -0.5, -1.5, 1.0, 1.0),
    (1.0, -1.0, -1.0, 0.25, 0.25),
    (1.0, -1.0, -1.0, 0.25, 0.55),
]


def played(env, steps=40):
    return env.rollout(steps, break_when_any_done=False)


@pytest.mark.parametrize(
    "fields",
    [
        {"view": "state"},
        {"assume": True, "claim": True, "memory": False},
        {"limit_fails": False, "corrupt": "both", "negative_ratio": 3, "reward": 5},
    ],
)
def test_the_contract_is_kept_by_all_kinds(fields):
    check_graph_env(make_env("reasoning", **fields))


@pytest.mark.parametrize("kind", range(6))
def test_outcomes_pay_by_the_table(kind):
    ends = dynamics.Ends(3, 4, 5, 6, 7, 7)
    atoms = torch.zeros(5, 2, 3, dtype=torch.int32)
    atoms[:, 0, 0] = torch.tensor([4, 5, 7, 5, 6])
    label = torch.tensor([True, True, False, False, False])
    weight = torch.full((5,), 0.25)
    paid = dynamics.reward(atoms, label, kind=kind, negative_weight=weight, ends=ends)
    assert paid.tolist() == pytest.approx(TABLE[kind])


def test_a_rollout_pays_and_ends_as_its_metrics_say():
    batch = played(make_env("reasoning", num_envs=32, reward=3, max_steps=4, give_up=False))["next"]
    done, metrics = batch["done"].squeeze(-1), batch["metrics"]
    assert batch["truncated"].any()
    assert metrics["true_positive"].any()
    wanted = (
        metrics["true_positive"]
        - 0.5 * metrics["false_negative"]
        - 1.5 * metrics["false_positive"]
        + metrics["true_negative"]
    )
    ended = batch["terminated"].squeeze(-1)
    assert torch.equal(batch["reward"].squeeze(-1), torch.where(ended, wanted, 0.0))
    total = sum(
        metrics[name] for name in ("true_positive", "false_negative", "false_positive", "true_negative")
    )
    assert torch.equal(total, done.float())


def test_the_limit_can_count_as_failure():
    batch = played(make_env("reasoning", num_envs=16, max_steps=2, limit_fails=True, give_up=False))["next"]
    assert not batch["truncated"].any()
    assert (batch["state", "step"] <= 2).all()


@pytest.mark.parametrize("ratio", [0, 1, 3])
def test_one_true_query_comes_with_so_many_false_ones(ratio):
    env = make_env("reasoning", num_envs=8 * (ratio + 1), negative_ratio=ratio)
    root = env.reset()
    assert int(root["state", "label"].sum()) == 8
    assert (root["state", "negative_weight"] == 1 / max(1, ratio)).all()
    known = env.corruption.known.contains(root["goal", "query"])
    assert torch.equal(known, root["state", "label"])


@pytest.mark.parametrize("side", ["head", "tail", "both"])
def test_corruptions_keep_the_domain_and_the_other_side(side):
    data = load_dataset("countries_s3")
    corruption, generator = Corruption.of(data), torch.Generator().manual_seed(3)
    true = data.train.repeat(5, 1)
    false, found = corruption.draw(true, side=side, generator=generator)
    domain = {entity: name for name, members in data.domains.items() for entity in members}
    changed = false != true
    assert not changed[:, 0].any()
    assert (changed.sum(1) == found.long()).all()
    true_somewhere = set(map(tuple, torch.cat((data.train, data.valid, data.test)).tolist()))
    assert true_somewhere.isdisjoint(map(tuple, false[found].tolist()))
    assert {"head": [True, False], "tail": [False, True], "both": [True, True]}[side] == changed[:, 1:].any(
        0
    ).tolist()
    for old, new in zip(true[found].tolist(), false[found].tolist(), strict=True):
        assert [domain[entity] for entity in old[1:]] == [domain[entity] for entity in new[1:]]


def test_replacements_are_uniform_over_what_is_false():
    known = torch.tensor([[1, 1, 2], [1, 1, 5]])
    corruption = Corruption(known, num_predicates=1, num_entities=6)
    generator = torch.Generator().manual_seed(0)
    drawn, _ = corruption.draw(known[:1].repeat(8000, 1), side="tail", generator=generator)
    share = torch.bincount(drawn[:, 2], minlength=7) / 8000
    assert share[[0, 2, 5]].tolist() == [0, 0, 0]
    assert share[[1, 3, 4, 6]].tolist() == pytest.approx([0.25] * 4, abs=0.025)
    assert sorted(corruption.candidates(known[0], side="tail")[:, 2].tolist()) == [1, 3, 4, 6]


def test_where_nothing_is_false_the_query_stays_true():
    known = torch.tensor([[1, 1, 1], [1, 1, 2]])
    corruption = Corruption(known, num_predicates=1, num_entities=2)
    drawn, found = corruption.draw(known, side="tail", generator=torch.Generator())
    assert not found.any()
    assert torch.equal(drawn, known)


def test_a_list_is_walked_in_order_and_again():
    env = make_env("reasoning", num_envs=3, mode="eval", split="test")
    queries = env.dataset.test[:4]
    env.set_queries(queries, torch.tensor([True, False, True, False]))
    first, second = env.reset(), env.reset()
    assert torch.equal(first["goal", "query"].long(), queries[:3])
    assert torch.equal(second["goal", "query"].long(), queries[[3, 0, 1]])
    assert second["state", "label"].tolist() == [False, True, False]


def test_stages_draw_proofs_of_their_depth():
    env = make_env("reasoning", num_envs=64, negative_ratio=0, split="test")
    env.apply_stage(proof_depths=(1, 3))
    shallow = env.reset()["goal", "query"].long()
    env.apply_stage(proof_depths=4)
    deep = env.reset()["goal", "query"].long()
    for queries, allowed in ((shallow, {1, 2, 3}), (deep, {4})):
        found = oracle.search(env.successors.program, queries, depth=4)
        assert set(found.depth.tolist()) <= allowed
    with pytest.raises(ConfigError, match="shortest proof of 9 to 9 steps"):
        env.apply_stage(proof_depths=9)


def test_a_query_of_training_is_no_proof_of_itself():
    env = make_env("reasoning", num_envs=64, negative_ratio=0)
    root = env.reset()
    assert env.successors.program.facts.contains(root["goal", "query"]).all()
    first = root["goal", "atoms"][:, 0, 0]
    assert (env.successors(root["goal"]).successors[:, 0, 0] != env.ends.true).all()
    assert (first == root["goal", "query"][:, 0]).all()


def test_views_offer_the_same_and_successors_follow_from_what_rollouts_keep():
    envs = [make_env("reasoning", num_envs=16, seed=5, view=view) for view in ("padded", "state")]
    assert isinstance(envs[0].actions, ChooseFromSet)
    assert isinstance(envs[1].actions, ChooseSuccessor)
    roots = [env.reset() for env in envs]
    for _ in range(12):
        padded, plain = roots
        assert torch.equal(padded["action_mask"].sum(-1), plain["n_actions"])
        action = (torch.rand(16) * plain["n_actions"]).long()
        roots = [
            env.step_and_maybe_reset(root.set("action", action))[1]
            for env, root in zip(envs, roots, strict=True)
        ]
        assert torch.equal(roots[0]["state", "atoms"], roots[1]["state", "atoms"])
    batch = Rollout(envs[0], envs[0].rand_action, rollout_length=6).collect()
    again = envs[0].successors(batch["goal"])
    padded, filled = again.padded(envs[0].config.max_successors)
    assert torch.equal(padded, batch["successors"].flatten(0, 1))
    assert torch.equal(filled, batch["action_mask"].flatten(0, 1))


def test_the_cache_changes_nothing(monkeypatch):
    with_cache = played(_seeded())
    monkeypatch.setattr(ExpansionCache, "get", lambda *_: None)
    monkeypatch.setattr(ExpansionCache, "chosen", lambda *_: None)
    without = played(_seeded())
    assert (with_cache == without).all()


def test_a_step_expands_every_goal_once(monkeypatch):
    """Successors of all worlds, of new ones too, are found in one expansion and chosen from it later."""
    env, sizes = make_env("reasoning", num_envs=32, seed=2, view="state", max_steps=3), []
    root, of = env.reset(), Successors.of

    def counted(self, atoms, *arguments, **settings):
        sizes.append(len(atoms))
        return of(self, atoms, *arguments, **settings)

    monkeypatch.setattr(Successors, "of", counted)
    for number in range(1, 9):
        stepped, root = env.step_and_maybe_reset(env.rand_action(root))
        assert len(sizes) == number
        assert sizes[-1] == 32 + int(stepped["next", "done"].sum())
    assert max(sizes) > 32


def test_chosen_successors_are_those_of_the_goal_after_a_reset():
    env = make_env("reasoning", num_envs=32, seed=2, view="state", max_steps=3)
    root = env.reset()
    for _ in range(12):
        before = env.successors(root["goal"]).chosen(env.rand_action(root)["action"])
        stepped, root = env.step_and_maybe_reset(root)
        assert torch.equal(stepped["next", "state", "atoms"], before)


def test_a_place_beyond_the_last_is_the_last():
    env = make_env("reasoning", num_envs=8, seed=2, view="state")
    found = env.successors(env.reset()["goal"])
    last, rows = found.chosen(found.counts - 1), torch.tensor([3, 0])
    assert torch.equal(found.chosen(found.counts), last)
    assert torch.equal(found.chosen(found.counts[rows], rows=rows), last[rows])
    assert torch.equal(found.chosen(torch.full((8,), -1)), found.chosen(torch.zeros(8, dtype=torch.int64)))


def test_steps_by_hand_are_those_with_resets():
    rolled, by_hand = (make_env("reasoning", num_envs=16, seed=4, view="state") for _ in range(2))
    root, other = rolled.reset(), by_hand.reset()
    for _ in range(30):
        action = rolled.rand_action(root)["action"]
        _, root = rolled.step_and_maybe_reset(root)
        other = by_hand.maybe_reset(by_hand.step_mdp(by_hand.step(other.set("action", action))))
        for name in ("atoms", "query", "history", "label"):
            assert torch.equal(root["state", name], other["state", name])
        assert torch.equal(root["n_actions"], other["n_actions"])


def _seeded():
    torch.manual_seed(0)
    return make_env("reasoning", num_envs=8, seed=2, view="state")


def test_states_changed_in_place_are_expanded_anew():
    env = make_env("reasoning", num_envs=4, view="state")
    root = env.reset()
    env.expanded(root["state"])
    root["state", "atoms"][:] = 0
    root["state", "atoms"][:, 0, 0] = env.ends.false
    assert env.expanded(root["state"]).failed.all()


def test_stock_policies_play_the_padded_view():
    env = make_env("reasoning", num_envs=4)
    model = make_actor_critic(env.graph, env.actions, ModelConfig())
    batch = Rollout(env, model.actor, rollout_length=3).collect()
    assert batch["action_log_prob"].isfinite().all()


def test_data_without_rules_is_refused(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text("p(a,b).\n")
    with pytest.raises(ConfigError, match="no rules"):
        make_env("reasoning", data=str(tmp_path))


def test_it_runs_in_inference_mode_as_outside():
    expected = played(_seeded(), steps=12)
    with torch.inference_mode():
        assert (played(_seeded(), steps=12) == expected).all()


def test_births_draw_from_the_split_whatever_list_was_given():
    env = make_env("reasoning", num_envs=16, split="test", negative_ratio=0)
    env.set_queries(env.dataset.train[:1], torch.tensor([False]))
    env.apply_stage(negative_ratio=0)
    drawn = env.reset()["goal", "query"].long()
    assert (drawn.unsqueeze(1) == env.dataset.test).all(-1).any(-1).all()


def test_no_query_of_a_list_is_spent_on_a_world_that_goes_on(monkeypatch):
    """Not even where other worlds are born for every row, and those of finished ones taken."""
    monkeypatch.setattr(GraphEnv, "_can_sync", property(lambda _: False))
    env = make_env("reasoning", num_envs=4, mode="eval", split="test", view="state")
    queries = env.dataset.test[:12]
    env.set_queries(queries, torch.ones(12, dtype=torch.bool))
    root = env.reset()
    root.set("done", torch.tensor([[True], [False], [False], [True]]))
    after = env.maybe_reset(root)["goal", "query"].long()
    assert torch.equal(after, queries[[4, 1, 2, 5]])


def test_clauses_are_rows_of_the_data_where_facts_are_withheld():
    env = make_env("reasoning", withheld=0.5)
    facts = env.successors.program.facts
    assert len(facts) < 0.6 * len(env.dataset.facts)
    assert torch.equal(env.dataset.facts[facts.fact[:-1], 1:].int(), facts.arguments[:-1])
