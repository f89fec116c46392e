"""Scores of embeddings equal those of PyG and of the formulas, whichever way they are asked for."""

import json

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import CheckpointError
from edgewise.systems.reasoning.embeddings import geometry
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.store import load_kge, save_kge
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

E, P = 7, 3
MODELS = [{"model": "complex"}, {"model": "distmult"}]


def embedding(*, reciprocal=False, seed=0, **fields):
    config = EmbeddingConfig(dim=6, reciprocal=reciprocal, **fields)
    model = KnowledgeEmbedding(config, num_entities=E, num_predicates=P).double()
    model.initialise(0.5, torch.Generator().manual_seed(seed))
    return model


def all_atoms():
    predicate, head, tail = torch.meshgrid(
        torch.arange(1, P + 1), torch.arange(1, E + 1), torch.arange(1, E + 1), indexing="ij"
    )
    return torch.stack([predicate, head, tail], -1).reshape(-1, 3)


@pytest.mark.parametrize("fields", MODELS, ids=lambda fields: "-".join(fields.values()))
def test_scores_are_those_of_the_model_in_pyg(fields):
    model, atoms = embedding(**fields), all_atoms()
    p, h, t = (atoms - 1).unbind(-1)
    torch.testing.assert_close(model.score(atoms), model.tables(h, p, t))


@pytest.mark.parametrize("fields", MODELS, ids=lambda fields: "-".join(fields.values()))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_every_way_to_ask_gives_the_same_score(fields, reciprocal):
    model, atoms = embedding(reciprocal=reciprocal, **fields), all_atoms()
    p, h, t = atoms.unbind(-1)
    of_tails = model.score_tails(h, p).gather(1, t.unsqueeze(1) - 1).squeeze(1)
    of_heads = model.score_heads(p, t).gather(1, h.unsqueeze(1) - 1).squeeze(1)
    torch.testing.assert_close(model.score(atoms, side="tail"), of_tails)
    torch.testing.assert_close(model.score(atoms, side="head"), of_heads)
    torch.testing.assert_close(model.score(atoms), (of_tails + of_heads) / 2)
    torch.testing.assert_close(model.log_probability(atoms), F.logsigmoid(model.score(atoms)))
    if not reciprocal:
        torch.testing.assert_close(of_tails, of_heads)


def test_complex_tells_directions_apart_and_distmult_cannot():
    atoms = all_atoms()
    turned = atoms[:, [0, 2, 1]]
    torch.testing.assert_close(
        embedding(model="distmult").score(atoms), embedding(model="distmult").score(turned)
    )
    assert not torch.allclose(
        embedding(model="complex").score(atoms), embedding(model="complex").score(turned)
    )


@given(st.integers(1, 4), st.integers(0, 1000))
def test_products_and_moduli_are_those_of_complex_numbers(dim, seed):
    generator = torch.Generator().manual_seed(seed)
    left, right = (torch.randn(5, 2 * dim, generator=generator, dtype=torch.float64) for _ in range(2))
    one, two = (torch.complex(*vector.chunk(2, -1)) for vector in (left, right))

    def parts(numbers):
        return torch.cat([numbers.real, numbers.imag], -1)

    torch.testing.assert_close(geometry.multiply(left, right), parts(one * two))
    torch.testing.assert_close(geometry.conjugate(left), parts(one.conj().resolve_conj()))
    torch.testing.assert_close(geometry.moduli(left), one.abs())


def test_the_gradient_of_moduli_at_zero_is_finite():
    point = torch.zeros(1, 4, requires_grad=True)
    geometry.moduli(point).sum().backward()
    assert point.grad.isfinite().all()


def test_building_a_model_draws_nothing_from_the_global_generator():
    before = torch.random.get_rng_state()
    embedding(model="complex")
    assert torch.equal(before, torch.random.get_rng_state())


WORDS = Vocabulary.of([f"e{i}" for i in range(E)], [f"p{i}" for i in range(P)])


@pytest.mark.parametrize("fields", MODELS, ids=lambda fields: "-".join(fields.values()))
def test_what_is_loaded_scores_as_what_was_saved(tmp_path, fields):
    model = embedding(reciprocal=True, **fields).float()
    save_kge(tmp_path / "kge", model, vocabulary=WORDS, about={"mrr": 0.5})
    again = load_kge(tmp_path / "kge", vocabulary=WORDS)
    assert torch.equal(model.score(all_atoms()), again.score(all_atoms()))
    assert again.config == model.config
    assert not any(parameter.requires_grad for parameter in again.parameters())


def test_embeddings_of_other_names_are_refused(tmp_path):
    save_kge(tmp_path, embedding(model="complex"), vocabulary=WORDS)
    other = Vocabulary.of([f"f{i}" for i in range(E)], [f"p{i}" for i in range(P)])
    with pytest.raises(CheckpointError, match="have another vocabulary") as caught:
        load_kge(tmp_path, vocabulary=other)
    assert caught.value.exit_code == 3


def damage(folder, kind):
    manifest = json.loads((folder / "manifest.json").read_text())
    tensors = folder / "model.safetensors"
    if kind == "no manifest":
        (folder / "manifest.json").unlink()
    elif kind == "no tensors":
        tensors.unlink()
    elif kind == "cut":
        tensors.write_bytes(tensors.read_bytes()[:-8])
    elif kind == "flipped":
        content = bytearray(tensors.read_bytes())
        content[-1] ^= 1
        tensors.write_bytes(content)
    elif kind == "not JSON":
        (folder / "manifest.json").write_text("{")
    else:
        changes = {
            "foreign": {"format": "x"},
            "newer": {"version": 2},
            "sizes": {"num_entities": 9},
            "no size": {"num_entities": None},
            "a size of true": {"num_predicates": True},
            "a negative size": {"num_predicates": -1},
            "a vast size": {"num_entities": 10**9},
            "a size past all integers": {"num_entities": 10**30},
            "model": {"embedding": {"model": "conve"}},
        }
        (folder / "manifest.json").write_text(json.dumps({**manifest, **changes[kind]}))


@pytest.mark.parametrize(
    "kind",
    [
        "no manifest",
        "no tensors",
        "cut",
        "flipped",
        "not JSON",
        "foreign",
        "newer",
        "sizes",
        "no size",
        "a size of true",
        "a negative size",
        "a vast size",
        "a size past all integers",
        "model",
    ],
)
def test_a_damaged_folder_is_refused(tmp_path, kind):
    save_kge(tmp_path, embedding(model="complex"), vocabulary=WORDS)
    load_kge(tmp_path)
    damage(tmp_path, kind)
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        load_kge(tmp_path)
