"""Attention in C against the same in torch: values, gradients, odd edges, and where it is not used."""

import os
import stat

import pytest
import torch

from edgewise.models.encoders.attention import EdgeAttention
from edgewise.models.native import attention as native
from edgewise.models.native import library as libraries

needs_compiler = pytest.mark.skipif(libraries.library("attention") is None, reason="there is no C compiler")


def layer(channels, heads, features):
    torch.manual_seed(0)
    return EdgeAttention(channels, heads, edge_features=features)


def graph(nodes, edges, features):
    generator = torch.Generator().manual_seed(1)
    # The last two nodes have no edges; there are loops and parallel edges.
    index = torch.randint(max(nodes - 2, 1), (2, edges), generator=generator)
    attr = torch.randn(edges, features, generator=generator) if features else None
    return index, attr


def results(attention, h, index, attr, *, compiled, monkeypatch):
    """Outputs, weights, and the gradients of a sum with random weights for everything that has one."""
    with monkeypatch.context() as patch:
        if not compiled:
            patch.setattr(native, "takes", lambda *_, **__: False)
        leaves = [h, *attention.parameters()] + ([] if attr is None else [attr])
        for leaf in leaves:
            leaf.grad = None
        out, weights = attention.sparse(h, index, attr)
        torch.manual_seed(2)
        (out * torch.randn(out.shape)).sum().backward()
    gradients = [leaf.grad.clone() for leaf in leaves if leaf.grad is not None]
    return [out.detach(), *(each.detach() for each in weights), *gradients]


@needs_compiler
@pytest.mark.parametrize("features", [0, 1, 3, 9])
@pytest.mark.parametrize(
    ("channels", "heads"), [(64, 4), (32, 4), (32, 1), (24, 2), (20, 4), (6, 3), (130, 65), (128, 64)]
)
def test_it_equals_torch(channels, heads, features, monkeypatch):
    attention = layer(channels, heads, features)
    index, attr = graph(11, 40, features)
    h = torch.randn(11, channels, generator=torch.Generator().manual_seed(3)).requires_grad_()
    attr = None if attr is None else attr.requires_grad_()
    assert native.takes(h, heads=4)
    found, expected = (
        results(attention, h, index, attr, compiled=each, monkeypatch=monkeypatch) for each in (True, False)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-5)


@needs_compiler
def test_large_logits_do_not_overflow(monkeypatch):
    attention, (index, attr) = layer(16, 2, 0), graph(6, 20, 0)
    h = (200 * torch.randn(6, 16, generator=torch.Generator().manual_seed(3))).requires_grad_()
    found, expected = (
        results(attention, h, index, attr, compiled=each, monkeypatch=monkeypatch) for each in (True, False)
    )
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@needs_compiler
def test_without_edges_the_root_is_left():
    attention = layer(16, 2, 0)
    h = torch.randn(4, 16)
    out, weights = attention.sparse(h, torch.zeros(2, 0, dtype=torch.int64), None)
    torch.testing.assert_close(out, attention.project(h)[:, 48:])
    assert weights.alpha.shape == (0, 2)


@needs_compiler
def test_what_is_not_a_number_stays_that():
    attention, (index, _) = layer(16, 2, 0), graph(6, 20, 0)
    h = torch.randn(6, 16)
    h[int(index[0, 0])] = torch.nan
    out, _ = attention.sparse(h, index, None)
    assert out[int(index[1, 0])].isnan().any()
    assert out[5].isfinite().all()


@needs_compiler
def test_order_of_other_edges_and_nodes_changes_no_bit():
    """A graph gives the same numbers alone and in a union."""
    attention, (index, attr) = layer(32, 4, 3), graph(9, 30, 3)
    h = torch.randn(9, 128)
    alone = native.attend(h, index, attr, attention.edge, heads=4)[0]
    both = native.attend(
        torch.cat((h, h)), torch.cat((index, index + 9), 1), torch.cat((attr, attr)), attention.edge, heads=4
    )[0]
    assert torch.equal(both[:9], alone)
    assert torch.equal(both[9:], alone)


@needs_compiler
@pytest.mark.parametrize("wrong", [-1, 9, 1 << 40])
def test_edges_of_nodes_that_do_not_exist_are_refused(wrong):
    attention, (index, _) = layer(16, 2, 0), graph(9, 12, 0)
    index[1, 7] = wrong
    with pytest.raises(IndexError, match="does not exist: there are 9"):
        attention.sparse(torch.randn(9, 16), index, None)


@needs_compiler
def test_where_torch_is_used(monkeypatch):
    h = torch.randn(3, 16)
    assert native.takes(h, heads=4)
    assert not native.takes(h, heads=65)
    assert not native.takes(h.double(), heads=4)
    assert not native.takes(h.to("meta"), heads=4)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "get_num_threads", lambda: 8)
        assert not native.takes(h, heads=4)
    native._usable.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(native, "attend", lambda rows, *_, **__: (rows[:, :16] * 2,))
        assert not native.takes(h, heads=4), "a library that computes something else is not used"
    native._usable.cache_clear()
    exported = torch.export.export(Whole(layer(16, 2, 0)), (h, torch.tensor([[0, 1], [1, 2]])), strict=False)
    assert "Attention" not in str(exported.graph)


class Whole(torch.nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, h, index):
        return self.attention.sparse(h, index, None)[0]


@pytest.fixture
def cold(monkeypatch, tmp_path):
    """An empty cache."""
    libraries.library.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield tmp_path / "edgewise" / "native"
    libraries.library.cache_clear()


@needs_compiler
def test_it_is_compiled_once_for_the_user_alone(cold):
    assert libraries.library("attention") is not None
    (file,) = cold.iterdir()
    assert stat.S_IMODE(cold.stat().st_mode) == 0o700
    before = file.stat().st_mtime_ns
    libraries.library.cache_clear()
    assert libraries.library("attention") is not None
    assert file.stat().st_mtime_ns == before


@needs_compiler
def test_a_cache_that_others_may_write_is_not_used(cold):
    cold.mkdir(parents=True)
    os.chmod(cold, 0o777)
    assert libraries.library("attention") is not None
    assert list(cold.iterdir()) == []


@pytest.mark.parametrize("why", ["turned off", "no compiler", "a compiler that fails"])
def test_without_a_library_torch_is_used(cold, why, monkeypatch, tmp_path):
    if why == "turned off":
        monkeypatch.setenv(libraries.SWITCH, "0")
    elif why == "no compiler":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("CC", "false")
    assert libraries.library("attention") is None
    native._functions.cache_clear()
    native._usable.cache_clear()
    try:
        attention, (index, attr) = layer(16, 2, 3), graph(6, 20, 3)
        assert attention.sparse(torch.randn(6, 16), index, attr)[0].isfinite().all()
    finally:
        native._functions.cache_clear()
        native._usable.cache_clear()
