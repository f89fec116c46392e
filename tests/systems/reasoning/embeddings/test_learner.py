"""Embeddings learn what a small world has to teach, alike for equal seeds, and continue where they were."""

import pytest
import torch
from torch import nn
from torch.optim import Adagrad

from edgewise.config.errors import NumericalStop
from edgewise.systems.reasoning.embeddings import learner as kge
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig
from edgewise.systems.reasoning.embeddings.learner import KGELearner
from edgewise.systems.reasoning.embeddings.ranking import rank_all
from edgewise.systems.reasoning.embeddings.row_adagrad import RowAdagrad

E = 12
NEXT, PREVIOUS = 1, 2


def ring():
    """Everyone on a ring and the one after, and the one before: held-out atoms follow from their inverses."""
    here = torch.arange(E)
    following = torch.stack([torch.full((E,), NEXT), here + 1, (here + 1) % E + 1], -1)
    preceding = following[:, [0, 2, 1]].clone()
    preceding[:, 0] = PREVIOUS
    atoms = torch.cat([following, preceding])
    held_out = torch.tensor([0, 5, E + 8])
    kept = torch.ones(2 * E, dtype=torch.bool)
    kept[held_out] = False
    return atoms[kept], atoms[held_out], atoms


def config(**fields):
    embedding = {name: fields.pop(name) for name in ("model", "reciprocal") if name in fields}
    return KGEConfig(embedding=EmbeddingConfig(dim=16, **embedding), batch_size=8, epochs=60, **fields)


def learner(**fields):
    return KGELearner(config(**fields), num_entities=E, num_predicates=2)


def mrr(model, atoms, known):
    found = rank_all(
        atoms, known, score_tails=model.score_tails, score_heads=model.score_heads, num_entities=E
    )
    return found.metrics()["mrr"]


ADAM = {"optimiser": "adam", "learning_rate": 0.05}
WAYS = {
    "complex, all": {"n3": 0.01},
    "complex, not reciprocal": {"reciprocal": False, "n3": 0.01},
    "complex, sample": {"loss": "shared_negatives", "negatives": 6, "n3": 0.01},
    "complex, dura": {"dura": 0.01},
    "distmult, sample": {"model": "distmult", "loss": "shared_negatives", "negatives": 8, **ADAM},
}


@pytest.mark.parametrize("fields", WAYS.values(), ids=WAYS)
def test_the_training_atoms_are_learned(fields):
    train, _, atoms = ring()
    found = learner(**fields)
    before = mrr(found.model, train, atoms)
    for _ in range(60):
        loss = found.epoch(train)
    assert loss < 2.5
    assert mrr(found.model, train, atoms) > max(0.8, before + 0.2)


def test_regularisation_keeps_embeddings_small():
    train, _, _ = ring()
    sizes = []
    for fields in ({}, {"n3": 0.05}, {"dura": 0.05}, {"n3": 0.05, "dura": 0.05}):
        found = learner(**fields)
        for _ in range(20):
            found.epoch(train)
        sizes.append(found.model.entity_vectors().norm().item())
    free, by_n3, by_dura, by_both = sizes
    assert by_both < min(by_n3, by_dura) < max(by_n3, by_dura) < free


@pytest.mark.parametrize("sparse", [False, True])
def test_equal_seeds_give_equal_embeddings_and_others_do_not(monkeypatch, sparse):
    monkeypatch.setattr(kge, "SPARSE_FROM", 1 if sparse else 10**9)
    train, _, atoms = ring()

    def scores(seed):
        found = learner(loss="shared_negatives", negatives=5, seed=seed)
        for _ in range(3):
            found.epoch(train)
        return found.model.score(atoms)

    assert torch.equal(scores(1), scores(1))
    assert not torch.equal(scores(1), scores(2))


def test_sparse_tables_learn_what_dense_ones_learn(monkeypatch):
    train, _, atoms = ring()
    found = []
    for limit in (1, 10**9):
        monkeypatch.setattr(kge, "SPARSE_FROM", limit)
        one = learner(loss="shared_negatives", negatives=5, n3=0.1)
        for _ in range(5):
            one.epoch(train)
        found.append(one.model.score(atoms))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"loss": "shared_negatives", "negatives": 5},
        {**ADAM, "decay": "linear"},
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_training_continues_bit_for_bit(monkeypatch, fields, sparse):
    monkeypatch.setattr(kge, "SPARSE_FROM", 1 if sparse else 10**9)
    train, _, atoms = ring()
    whole, half, rest = (learner(**fields) for _ in range(3))
    for _ in range(4):
        whole.epoch(train)
    for _ in range(2):
        half.epoch(train)
    rest.load_state_dict(half.state_dict())
    losses = [rest.epoch(train) for _ in range(2)]
    assert torch.equal(rest.model.score(atoms), whole.model.score(atoms))
    assert rest.epochs_done == whole.epochs_done == 4
    assert losses[0] > losses[1]


def test_both_questions_of_every_atom_are_asked_once():
    train, _, _ = ring()
    asked = []
    found = learner()
    found.update = lambda questions: asked.append(questions) or torch.zeros(())
    heard = []
    found.epoch(train, on_batch=heard.append)
    rows = sorted(map(tuple, torch.cat(asked).tolist()))
    forward = [(p - 1, h - 1, t - 1, 0) for p, h, t in train.tolist()]
    reverse = [(p - 1 + 2, t - 1, h - 1, 0) for p, h, t in train.tolist()]
    assert rows == sorted(forward + reverse)
    assert heard[-1] == 2 * len(train)


def test_a_loss_that_is_not_finite_stops_training():
    train, _, _ = ring()
    found = learner()
    found.model.tables.node_emb.weight.data[3] = torch.nan
    with pytest.raises(NumericalStop, match="the loss of epoch 1 is nan"):
        found.epoch(train)
    assert found.epochs_done == 0


def test_row_adagrad_gives_the_numbers_of_adagrad():
    tables = [nn.Embedding(9, 3, sparse=sparse) for sparse in (True, False)]
    tables[1].load_state_dict(tables[0].state_dict())
    optimisers = [RowAdagrad(tables[0].parameters(), 0.3), Adagrad(tables[1].parameters(), lr=0.3)]
    generator = torch.Generator().manual_seed(0)
    for _ in range(6):
        rows = torch.randint(9, (5,), generator=generator)
        target = torch.randn(5, 3, generator=generator)
        for table, optimiser in zip(tables, optimisers, strict=True):
            optimiser.zero_grad()
            (table(rows) - target).square().sum().backward()
            optimiser.step()
    torch.testing.assert_close(tables[0].weight, tables[1].weight)
