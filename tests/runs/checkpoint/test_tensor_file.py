"""Streamed safetensors files, read back by the reference reader."""

import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file
from tests.runs.states import DTYPES, in_a_new_process, little_memory, raw, same, tensors

from edgewise.runs.checkpoint import tensor_file


@given(
    st.dictionaries(st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"), tensors())
)
def test_the_reference_reader_agrees(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("file") / "x.safetensors"
    digest = tensor_file.write(path, content)
    found = load_file(path)
    assert found.keys() == content.keys()
    assert all(same(found[name], content[name]) for name in content)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest() == tensor_file.digest_of(content)
    assert digest == tensor_file.digest_of_file(path)
    assert tensor_file.size_of(content) == path.stat().st_size


def test_every_dtype_is_aligned_and_named_as_the_format_does(tmp_path):
    content = {f"t{index}": torch.zeros(3, dtype=dtype) for index, dtype in enumerate(tensor_file.DTYPES)}
    path = tmp_path / "x.safetensors"
    tensor_file.write(path, content)
    with safe_open(path, framework="pt") as file:
        assert all(file.get_tensor(name).dtype == content[name].dtype for name in content)
    assert set(DTYPES) <= set(tensor_file.DTYPES)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1:],
        lambda x: x[:, :1].expand(-1, 7),
        lambda x: x.view(-1)[3:],
        lambda x: x.flip(0).requires_grad_(),
    ],
)
def test_views_are_written_as_seen_whatever_the_chunk(tmp_path, monkeypatch, view):
    monkeypatch.setattr(tensor_file, "CHUNK", 24)
    tensor = view(torch.arange(60, dtype=torch.float32).view(6, 10))
    tensor_file.write(tmp_path / "x", {"x": tensor})
    assert raw(load_file(tmp_path / "x")["x"]) == raw(tensor)


def test_sparse_and_complex_are_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match=r"weight is a torch\.sparse_coo"):
        tensor_file.write(tmp_path / "a", {"weight": torch.eye(2).to_sparse()})
    with pytest.raises(TypeError, match="complex128"):
        tensor_file.write(tmp_path / "b", {"weight": torch.zeros(2, dtype=torch.complex128)})


def stream_a_mapped_tensor(folder):
    size = 1 << 26
    mapped = torch.from_file(str(folder / "replay"), shared=True, size=size, dtype=torch.uint8)
    with little_memory(1 << 25):
        with pytest.raises(RuntimeError):
            mapped.clone()
        tensor_file.write(folder / "x.safetensors", {"replay": mapped})
    assert (folder / "x.safetensors").stat().st_size > size


def test_a_mapped_tensor_is_streamed_without_a_copy_in_memory(tmp_path):
    in_a_new_process(stream_a_mapped_tensor, tmp_path)
