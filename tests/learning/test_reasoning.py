"""Provers reach their bars on the test queries of knowledge graphs, beside chance and exhaustive search."""

from pathlib import Path

import pytest

from edgewise.cli.main import main
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.reasoning.embeddings.defaults import default_config
from edgewise.systems.reasoning.embeddings.store import save_kge
from edgewise.systems.reasoning.embeddings.training import train_kge
from edgewise.systems.reasoning.evaluation.rank import RankOptions, rank_run
from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset

pytestmark = pytest.mark.learning

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
AREAS = {"countries_s1": 0.99, "countries_s2": 0.95, "countries_s3": 0.95}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("data", AREAS)
def test_where_countries_lie(data, seed, tmp_path):
    """The bar is that of the published path finders; chance through the same beam is below on S3."""
    config = load_config("reasoning-countries", keywords={"env.data": data, "seed": seed})
    run = start(config, folder=tmp_path / "run")
    found = rank_run(run, "rl", RankOptions(negatives=None, queries=None, oracle_depth=4))
    assert found.ranked[0].figures["auc_pr"] >= AREAS[data]


def folder_of(name):
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not beside this folder")
    return SHARED / name


def test_proofs_of_family_relations(tmp_path):
    """100 filtered negatives per side; the published figure is .6445, with fewer rules."""
    config = load_config("reasoning-family", keywords={"env.data": str(folder_of("family"))})
    run = start(config, folder=tmp_path / "run")
    assert rank_run(run, "rl", RankOptions(depth=2, beam=16)).ranked[0].figures["mrr"] >= 0.88


def test_proofs_and_embeddings_of_umls_together(tmp_path):
    """The weights come from the validation split."""
    dataset = load_dataset(folder_of("umls"), rules=NO_RULES)
    settings = default_config("complex", num_entities=dataset.vocabulary.num_entities)
    save_kge(tmp_path / "kge", train_kge(dataset, settings).model, vocabulary=dataset.vocabulary)
    config = load_config("reasoning-umls", keywords={"env.data": str(folder_of("umls"))})
    run = start(config, folder=tmp_path / "run")
    options = RankOptions(kge=str(tmp_path / "kge"), queries=None, depth=2, beam=16)
    figures = {one.name: one.figures["mrr"] for one in rank_run(run, "hybrid", options).ranked}
    assert figures["hybrid"] >= figures["kge"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["family", "umls"])
def test_a_policy_over_mined_rules_needs_fewer_goals(name, seed, tmp_path):
    """With a beam of one goal it exceeds a uniform policy and the order of confidence, by intervals."""
    folder, rules = folder_of(name), str(tmp_path / "rules.txt")
    flags = ["--length", "2", "--constants", "false", "--max-chains", "60", "--min-confidence", "0.1"]
    assert main(["reasoning", "mine", str(folder), *flags, "--out", rules]) == 0
    given = {"env.data": str(folder), "env.rules": rules, "seed": seed}
    run = start(load_config("reasoning-mined", keywords=given), folder=tmp_path / "run")
    options = RankOptions(queries=60, negatives=50, depth=2, beam=1, beams=(1,), oracle_depth=1)
    gains = rank_run(run, "rl", options).curve[0].gains
    assert gains.keys() == {"chance", "confidence"}
    assert all(gain.low > 0 for gain in gains.values())
