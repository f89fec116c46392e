"""Embeddings reach what is published for them, on public data and within a budget of processor time."""

import time
from pathlib import Path

import pytest

from edgewise.cli.main import main
from edgewise.systems.reasoning.embeddings.defaults import default_config
from edgewise.systems.reasoning.embeddings.training import measure, train_kge
from edgewise.systems.reasoning.evaluation.all_entities import rank_all_entities
from edgewise.systems.reasoning.evaluation.rule_ranking import RuleScorer
from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset

pytestmark = pytest.mark.learning

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def dataset(name):
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not beside this folder")
    return load_dataset(SHARED / name, rules=NO_RULES)


def figures(data, model, **settings):
    """Test figures of a model trained with the defaults for this data."""
    config = default_config(model, num_entities=data.vocabulary.num_entities)
    fitted = train_kge(data, config.model_copy(update=settings))
    return measure(fitted.model, data, "test")


@pytest.mark.parametrize("seed", range(3))
def test_complex_on_umls(seed):
    """ConvE's authors report .94; the bar is .93 in 15 CPU-seconds, of which it takes about four."""
    began = time.process_time()
    found = figures(dataset("umls"), "complex", seed=seed)
    assert found["mrr"] >= 0.93
    assert time.process_time() - began < 15


def test_complex_on_wn18rr_alone_and_with_mined_rules(tmp_path):
    """Embeddings at the level of LibKGE's .475, rules at .47, and both together above each by an interval.

    The bar of the embeddings is .47, for other seeds. All entities, filtered, both sides.
    """
    data, rules = dataset("wn18rr"), tmp_path / "rules.txt"
    config = default_config("complex", num_entities=data.vocabulary.num_entities)
    fitted = train_kge(data, config)
    assert main(["reasoning", "mine", str(SHARED / "wn18rr"), "--out", str(rules)]) == 0
    data = load_dataset(SHARED / "wn18rr", rules=str(rules))
    found = rank_all_entities(
        data, data.test, scorer=RuleScorer(data), embedding=fitted.model, methods=("greatest",)
    )
    reached = {name: ranks.metrics()["mrr"] for name, ranks in found.ranks.items()}
    assert reached["kge"] >= 0.47
    assert reached["greatest"] >= 0.47
    assert reached["hybrid"] >= 0.49
    assert found.differences["hybrid", "kge"].low > 0
    assert found.differences["hybrid", "greatest"].low > 0
