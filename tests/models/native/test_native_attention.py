"""Attention in C against the same in torch: values, gradients, odd edges, and where it is not used."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from edgewise.models.encoders.attention import EdgeAttention
from edgewise.models.native import attention as native
from edgewise.models.native import library as libraries

needs_compiler = pytest.mark.skipif(
    libraries.library("attention").functions is None, reason=libraries.library("attention").text
)


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
@pytest.mark.parametrize("features", [0, 1, 3, 8, 9, 32])
@pytest.mark.parametrize(
    ("channels", "heads"), [(64, 4), (32, 4), (32, 1), (24, 2), (20, 4), (6, 3), (130, 65), (128, 64)]
)
def test_it_equals_torch(channels, heads, features, monkeypatch):
    attention = layer(channels, heads, features)
    index, attr = graph(11, 40, features)
    h = torch.randn(11, channels, generator=torch.Generator().manual_seed(3)).requires_grad_()
    attr = None if attr is None else attr.requires_grad_()
    assert native.takes(h, None, heads=4)
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
    alone = native.attend(h, index, attr, attention.edge, heads=4, in_torch=None)[0]
    both = native.attend(
        torch.cat((h, h)),
        torch.cat((index, index + 9), 1),
        torch.cat((attr, attr)),
        attention.edge,
        heads=4,
        in_torch=None,
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
    assert native.takes(h, None, heads=4)
    assert not native.takes(h, None, heads=65)
    assert not native.takes(h.double(), None, heads=4)
    assert not native.takes(h.to("meta"), None, heads=4)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "get_num_threads", lambda: 8)
        assert not native.takes(h, None, heads=4)
    exported = torch.export.export(Whole(layer(16, 2, 0)), (h, torch.tensor([[0, 1], [1, 2]])), strict=False)
    assert "Attention" not in str(exported.graph)


class Whole(torch.nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, h, index):
        return self.attention.sparse(h, index, None)[0]


@needs_compiler
def test_gradients_have_gradients(monkeypatch):
    """A penalty on gradients, with weights that also reach the loss directly."""
    attention, (index, attr) = layer(16, 2, 3), graph(9, 30, 3)

    def second(*, compiled):
        with monkeypatch.context() as patch:
            if not compiled:
                patch.setattr(native, "takes", lambda *_, **__: False)
            h = torch.randn(9, 16, generator=torch.Generator().manual_seed(3)).requires_grad_()
            features = attr.clone().requires_grad_()
            attention.zero_grad()
            out, _ = attention.sparse(h, index, features)
            first = torch.autograd.grad(out.square().sum(), [h, features], create_graph=True)
            sum(each.square().sum() for each in first).backward()
            return [h.grad, features.grad, *(each.grad.clone() for each in attention.parameters())]

    for one, other in zip(second(compiled=True), second(compiled=False), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@needs_compiler
def test_arguments_that_do_not_fit_never_reach_the_loops():
    attention, (index, attr) = layer(16, 2, 3), graph(9, 30, 3)
    rows = torch.randn(9, 64)
    for wrong in (
        (rows, index.int(), attr, attention.edge),
        (rows, index, attr[:, :2], attention.edge),
        (rows, index, attr[:20], attention.edge),
        (rows, index, attr, None),
        (rows, index, attr.double(), attention.edge),
        (rows.double(), index, attr, attention.edge),
        (rows[:, :60], index, attr, attention.edge),
        (rows, index.to("meta"), attr, attention.edge),
    ):
        with pytest.raises(ValueError, match="do not fit each other"):
            native.attend(*wrong, heads=2, in_torch=None)


@needs_compiler
def test_arguments_may_be_views():
    attention, (index, attr) = layer(16, 2, 3), graph(9, 30, 3)
    h = torch.randn(9, 16)
    expected = attention.sparse(h, index, attr)[0]
    strided = torch.stack((attr, attr), -1)[..., 0]
    assert not strided.is_contiguous()
    assert torch.equal(attention.sparse(h, index.t().contiguous().t(), strided)[0], expected)


@needs_compiler
def test_half_precision_runs_in_torch():
    attention, (index, attr) = layer(16, 2, 3), graph(9, 30, 3)
    h = torch.randn(9, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, _ = attention.sparse(h, index, attr)
    torch.testing.assert_close(out.float(), attention.sparse(h, index, attr)[0], rtol=0.05, atol=0.05)


@needs_compiler
@pytest.mark.parametrize("mode", ["inference", "float64", "meta", "autocast"])
def test_the_first_call_may_be_in_any_mode(mode):
    """The check of the library does not depend on what is set where it is first needed."""
    contexts = {
        "inference": torch.inference_mode,
        "float64": lambda: set_default_dtype(torch.float64),
        "meta": lambda: torch.device("meta"),
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    }
    native.usable.cache_clear()
    with contexts[mode]():
        assert native.usable()


@contextmanager
def set_default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@needs_compiler
@pytest.mark.parametrize("loop", ["attention_forward", "attention_backward"])
def test_a_library_that_computes_something_else_is_not_used(loop, monkeypatch):
    def wrong(*arguments):
        return getattr(whole, loop)(*arguments[:3], 1, *arguments[4:])  # one channel in place of all

    whole = libraries.library("attention").functions
    both = {name: getattr(whole, name) for name in ("attention_forward", "attention_backward")}
    functions = native._functions()
    broken = [wrong if name == loop else each for name, each in zip(both, functions, strict=True)]
    monkeypatch.setattr(native, "_functions", lambda: broken)
    native.usable.cache_clear()
    assert not native.usable()
    monkeypatch.undo()
    native.usable.cache_clear()


@pytest.fixture
def cold(monkeypatch, tmp_path):
    """An empty cache."""
    libraries.library.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(libraries.SWITCH, raising=False)
    tmp_path.chmod(0o700)
    yield tmp_path / "edgewise" / "native"
    libraries.library.cache_clear()


@pytest.fixture
def quick(monkeypatch):
    """A compiler that takes no time: little is in a library without optimisation."""
    monkeypatch.setattr(libraries, "FLAGS", ("-O0", *libraries.FLAGS[2:]))


def loaded():
    libraries.library.cache_clear()
    return libraries.library("attention")


@needs_compiler
def test_it_is_compiled_once_for_the_user_alone(cold, quick):
    first = loaded()
    (file,) = cold.iterdir()
    assert first.functions is not None
    assert first.text == str(file)
    assert stat.S_IMODE(cold.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o700
    before = file.stat().st_mtime_ns
    assert loaded().functions is not None
    assert file.stat().st_mtime_ns == before


@needs_compiler
@pytest.mark.parametrize("where", [".", "..", "../.."])
def test_a_cache_that_others_may_write_is_not_used(cold, quick, where):
    cold.mkdir(parents=True)
    os.chmod(cold / where, 0o777)
    found = loaded()
    os.chmod(cold / where, 0o755)
    assert found.functions is not None
    assert "in every process" in found.text
    assert list(cold.iterdir()) == []


@needs_compiler
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("where", [".", ".."])
def test_a_cache_of_another_user_is_not_used(cold, quick, where):
    cold.mkdir(parents=True)
    os.chown(cold / where, 12345, 12345)
    assert "in every process" in loaded().text


@needs_compiler
def test_a_library_that_others_may_write_is_replaced(cold, quick):
    file = Path(loaded().text)
    file.write_bytes(b"planted")
    file.chmod(0o777)
    assert loaded().functions is not None
    assert file.read_bytes()[:7] != b"planted"
    assert stat.S_IMODE(file.stat().st_mode) == 0o700


@needs_compiler
def test_a_link_in_place_of_a_library_is_not_followed(cold, quick, tmp_path):
    file, planted = Path(loaded().text), tmp_path / "planted.so"
    file.unlink()
    planted.write_bytes(b"planted")
    file.symlink_to(planted)
    assert loaded().functions is not None
    assert not file.is_symlink()
    assert planted.read_bytes() == b"planted"


@needs_compiler
def test_a_damaged_library_is_compiled_again(cold, quick):
    file = Path(loaded().text)
    file.write_bytes(b"damaged")
    assert loaded().functions is not None


@needs_compiler
def test_a_cache_that_cannot_be_made(cold, quick, tmp_path):
    (tmp_path / "edgewise").write_text("a file in place of the folder")
    assert "in every process" in loaded().text


@needs_compiler
def test_several_may_compile_at_once(cold, quick):
    compiler = libraries._compiler()
    source = Path(libraries.__file__).with_name("attention.c")
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: libraries._load(source, compiler), range(4)))
    assert len({where for _, where in found}) == 1
    assert [file.suffix for file in cold.iterdir()] == [".so"]


@pytest.mark.parametrize("why", ["turned off", "no C compiler", "cannot compile"])
def test_without_a_library_torch_is_used(cold, why, monkeypatch, tmp_path):
    if why == "turned off":
        monkeypatch.setenv(libraries.SWITCH, "0")
    elif why == "no C compiler":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("CC", "false")
    assert loaded().functions is None
    assert why in loaded().text
    native.usable.cache_clear()
    try:
        attention, (index, attr) = layer(16, 2, 3), graph(6, 20, 3)
        assert not native.takes(torch.randn(6, 16), attr, heads=2)
        assert attention.sparse(torch.randn(6, 16), index, attr)[0].isfinite().all()
    finally:
        native.usable.cache_clear()
