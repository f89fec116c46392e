"""Speed of embeddings: updates with each loss, row-wise and dense optimisers, ranking compared with PyG.

    python -m benchmarks.kge [--json FILE] [--quick]

CPU time of one thread, medians of interleaved runs. As many entities and predicates as WN18RR, ComplEx with
100 complex numbers, batches of 1,024 queries, 512 shared negatives.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from benchmarks.program import Figures, cpu_seconds, main
from torch import Tensor

from edgewise.systems.reasoning.embeddings import learner as kge
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.learner import KGELearner
from edgewise.systems.reasoning.embeddings.ranking import rank_all

ENTITIES, PREDICATES, QUESTIONS = 40_943, 11, 1024


def atoms(count: int, entities: int) -> Tensor:
    """Sample atoms `[count, 3]`."""
    return torch.stack(
        [
            torch.randint(1, PREDICATES + 1, (count,)),
            torch.randint(1, entities + 1, (count,)),
            torch.randint(1, entities + 1, (count,)),
        ],
        -1,
    )


def update(entities: int, *, sparse: bool = True, **settings: object) -> Callable[[], object]:
    """Build one update on a batch of queries."""
    kge.SPARSE_FROM = 1 if sparse else 10**9
    values = {"embedding": {"dim": 100}, "negatives": 512, "n3": 0.1, **settings}
    learner = KGELearner(KGEConfig.from_plain(values), num_entities=entities, num_predicates=PREDICATES)
    rows = atoms(QUESTIONS, entities) - 1
    questions = torch.cat([rows, torch.zeros(QUESTIONS, 1, dtype=torch.int64)], -1)
    return lambda: learner.update(questions)


def updates(entities: int, repeats: int) -> dict[str, float]:
    """Measure milliseconds per update."""
    tasks = {
        "shared negatives, rows in use": update(entities, loss="shared_negatives"),
        "shared negatives, whole tables": update(entities, loss="shared_negatives", sparse=False),
        "all entities": update(entities, loss="one_vs_all", sparse=False),
    }
    return {f"{name} (ms)": 1e3 * taken for name, taken in cpu_seconds(tasks, repeats).items()}


def ranking(entities: int, questions: int, repeats: int) -> dict[str, float]:
    """Measure milliseconds per test atom: ours on both sides and filtered, PyG's on one side and raw."""
    model = KnowledgeEmbedding(EmbeddingConfig(), num_entities=entities, num_predicates=PREDICATES)
    test, known = atoms(questions, entities), atoms(90_000, entities)
    few = (test[:4] - 1).unbind(-1)

    def ours() -> object:
        return rank_all(
            test, known, score_tails=model.score_tails, score_heads=model.score_heads, num_entities=entities
        )

    def theirs() -> object:
        return model.tables.test(few[1], few[0], few[2], batch_size=20_000, log=False)

    taken = cpu_seconds({"ours": ours, "theirs": theirs}, repeats)
    return {
        "filtered, both sides (ms per atom)": 1e3 * taken["ours"] / questions,
        "PyG, raw, tails only (ms per atom)": 1e3 * taken["theirs"] / len(few[0]),
    }


def run(quick: bool) -> Figures:
    """Measure everything; `quick` uses a small graph."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    entities, repeats = (2000, 1) if quick else (ENTITIES, 5)
    return {"update": updates(entities, repeats), "ranking": ranking(entities, 256, repeats)}


if __name__ == "__main__":
    main(run, __doc__)
