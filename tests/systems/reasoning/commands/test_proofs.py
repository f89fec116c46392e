"""Runs that prove, on the command line: ranking with embeddings, proofs as trees, and what is refused."""

import pytest

from edgewise.cli.main import main

TRAIN = {
    "env.data": "countries_s2",
    "env.max_steps": 4,
    "model.hidden": 8,
    "model.rounds": 1,
    "training.total_frames": 64,
    "training.num_envs": 8,
    "training.rollout_length": 4,
    "algorithm.epochs": 1,
    "algorithm.minibatch_size": 16,
    "evaluation.every": "none",
    "evaluation.episodes": 8,
    "logging.tensorboard": "false",
}


@pytest.fixture(scope="module")
def prover(tmp_path_factory):
    """The folder of a run that proves."""
    folder = tmp_path_factory.mktemp("runs") / "prover"
    flags = [f"--{name}={value}" for name, value in TRAIN.items()]
    assert main(["train", "reasoning-countries", *flags, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory):
    """The folder of embeddings of the same data."""
    folder = tmp_path_factory.mktemp("kge") / "complex"
    assert main(["reasoning", "kge", "countries_s2", "--dim=4", "--epochs=3", "--out", str(folder)]) == 0
    return folder


def test_ranking_with_embeddings_shows_every_way_on_the_same_lists(edgewise, prover, embeddings):
    asked = [
        "reasoning",
        "rank",
        prover,
        "--mode",
        "hybrid",
        "--kge",
        embeddings,
        "--queries",
        6,
        "--beam",
        8,
    ]
    shown = edgewise(*asked, "--json")
    assert shown.code == 0
    data = shown.data
    assert list(data["ranked"]) == ["hybrid", "rl", "greedy", "rules", "kge", "chance", "oracle"]
    assert data["lists"] == 6
    assert list(data["fusion"]) == [
        "embedding",
        "concluded",
        "greatest confidence",
        "noisy-or",
        "proved",
        "log probability of proofs",
    ]
    estimate = data["gain"]["difference"]
    assert data["gain"]["n"] == data["lists"]
    difference = data["ranked"]["hybrid"]["mrr"] - data["ranked"]["kge"]["mrr"]
    assert estimate == pytest.approx(difference)
    assert data["proofs"]["oracle"]["positives"] == 1.0
    text = edgewise(*asked).out
    assert "hybrid weights, fitted on 6 lists of the validation split" in text
    assert "MRR of hybrid minus embeddings" in text


def test_all_entities_are_ranked_by_proofs_too(edgewise, prover, embeddings):
    asked = ["reasoning", "rules", "countries_s2", "rules.txt", "--methods", "greatest", "--queries", 4]
    shown = edgewise(*asked, "--policy", prover, "--kge", embeddings, "--json").data
    columns = ["greatest", "kge", "rl", "chance", "hybrid", "hybrid_rl", "hybrid_chance"]
    assert list(shown["figures"]) == columns
    assert shown["searches"]["rl"]["beam"] == 4
    assert 0 < shown["searches"]["rl"]["entities"] == shown["searches"]["chance"]["entities"]
    assert list(shown["fusion"]) == ["hybrid", "hybrid_rl", "hybrid_chance"]
    assert list(shown["fusion"]["hybrid_chance"])[-2:] == ["proved by chance", "log probability by chance"]
    plain = edgewise(*asked, "--kge", embeddings, "--json").data
    assert {name: shown["figures"][name] for name in plain["figures"]} == plain["figures"]
    text = edgewise(*asked, "--policy", prover, "--beam", 2).out
    assert "goals each with a beam of 2" in text
    assert "proofs of a uniform policy with the same beam" in text
    assert "hybrid" not in text


def test_a_policy_of_other_facts_does_not_rank(edgewise, prover, trained):
    """Facts of S2 are answers of S3, with the same names."""
    refused = edgewise("reasoning", "rules", "countries_s3", "rules.txt", "--policy", prover)
    assert refused.code == 2
    assert "whose facts are not those of countries_s3" in refused.err
    refused = edgewise("reasoning", "rules", "countries_s2", "rules.txt", "--policy", trained)
    assert refused.code == 2
    assert "proves nothing" in refused.err


def test_a_proof_is_shown_as_a_tree(edgewise, prover):
    query = "locatedInCR(palau,oceania)"
    shown = edgewise("reasoning", "explain", prover, query, "--beam", 200, "--json").data
    assert shown["proved"]
    assert shown["tree"][0].startswith(query)
    assert shown["goals"][0] == [query]
    assert shown["goals"][-1] == []
    assert len(shown["probabilities"]) == len(shown["goals"]) - 1
    text = edgewise("reasoning", "explain", prover, query, "--beam", 200).out
    assert text.splitlines()[: len(shown["tree"])] == shown["tree"]
    assert "goals expanded" in text


def test_no_proof_is_an_answer_too(edgewise, prover):
    asked = ["reasoning", "explain", prover, "locatedInCR(palau,africa)", "--depth", 1]
    shown = edgewise(*asked)
    assert shown.code == 0
    assert "no proof of locatedInCR(palau,africa)" in shown.out
    assert edgewise(*asked, "--json").data == {"query": "locatedInCR(palau,africa)", "proved": False}


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("locatedInCR(palau,mars)", "no entity is called mars"),
        ("orbits(palau,oceania)", "no predicate is called orbits"),
        ("palau", "is no atom"),
    ],
)
def test_what_the_knowledge_base_does_not_name_is_refused(edgewise, prover, query, complaint):
    refused = edgewise("reasoning", "explain", prover, query)
    assert refused.code == 2
    assert complaint in refused.err


def test_runs_that_prove_nothing_are_neither_ranked_nor_explained(edgewise, trained):
    ranked = edgewise("reasoning", "rank", trained, "--mode", "rl")
    assert ranked.code == 2
    assert "ranks no candidates" in ranked.err
    explained = edgewise("reasoning", "explain", trained, "locatedInCR(palau,oceania)")
    assert explained.code == 2
    assert "proves nothing" in explained.err


@pytest.mark.parametrize("idle", ["--episodes=3", "--baselines=all", "--stochastic", "--set=a=1", "--size=2"])
def test_ranking_refuses_what_it_has_no_use_for(edgewise, prover, idle):
    refused = edgewise("reasoning", "rank", prover, "--mode", "rl", idle)
    assert refused.code == 2
    assert idle.partition("=")[0] in refused.err


def test_ranking_by_embeddings_needs_some(edgewise, prover):
    refused = edgewise("reasoning", "rank", prover, "--mode", "hybrid")
    assert refused.code == 2
    assert "edgewise reasoning kge countries_s2" in refused.err


def test_embeddings_of_other_names_are_refused(edgewise, prover, tmp_path):
    other = tmp_path / "other"
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text("p(a,b).\n")
    assert edgewise("reasoning", "kge", tmp_path, "--dim=2", "--epochs=1", "--out", other).code == 0
    assert edgewise("reasoning", "rank", prover, "--mode", "kge", "--kge", other).code == 3


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """A run over mined rules with the weights as a prior."""
    folder = tmp_path_factory.mktemp("weighted")
    rules = folder / "mined.txt"
    assert (
        main(["reasoning", "mine", "countries_s2", "--out", str(rules), "--constants=false", "--length=2"])
        == 0
    )
    flags = [f"--{name}={value}" for name, value in TRAIN.items()]
    flags += [f"--env.rules={rules}", "--model.prior=1", "--model.evidence=true"]
    assert main(["train", "reasoning-countries", *flags, "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_rules_are_a_column_and_beams_show_mrr_against_goals(edgewise, weighted):
    asked = ["reasoning", "rank", weighted, "--mode", "rules", "--queries", 4, "--depth", 2, "--beams", "1,4"]
    data = edgewise(*asked, "--json").data
    assert list(data["ranked"])[:3] == ["rules", "rl", "greedy"]
    assert "confidence" in data["ranked"]
    assert data["ranking"] == {"split": "test", "sides": "tail", "ties": "count half"}
    columns = len(data["ranked"])
    assert len(data["differences"]) == columns * (columns - 1) // 2
    assert all(one["n"] == data["lists"] for one in data["differences"].values())
    one, four = data["curve"]
    assert (one["beam"], four["beam"]) == (1, 4)
    assert set(one["mrr"]) == {"rl", "chance", "confidence"}
    assert one["goals_per_candidate"]["rl"] <= four["goals_per_candidate"]["rl"]
    assert set(one["gains"]) == {"chance", "confidence"}
    text = edgewise(*asked).out
    assert "test split, filtered; tails alone; ties count half" in text
    assert "goals per candidate" in text


def test_a_proof_shows_the_evidence_of_its_rules(edgewise, weighted):
    shown = edgewise("reasoning", "explain", weighted, "locatedInCR(palau,oceania)", "--beam", 200).out
    assert " of " in shown.splitlines()[0]


def test_a_page_explains_sampled_queries(edgewise, weighted, tmp_path):
    file = tmp_path / "page.html"
    shown = edgewise("reasoning", "explain", weighted, "--all", "--queries", 3, "--out", file, "--json").data
    assert shown["questions"] == 3
    text = file.read_text()
    assert text.count("<h2") == 3
    assert "locatedInCR(" in text
    assert "rules that conclude it" in text
    both = edgewise("reasoning", "explain", weighted, "locatedInCR(palau,oceania)", "--all")
    assert both.code == 2
    assert "either a query or --all" in both.err
    assert edgewise("reasoning", "explain", weighted).code == 2
