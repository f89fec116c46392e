"""Compilation: what comes back with it, without it, and where no compiler is found."""

import copy
import logging
from shutil import which

import pytest
import torch
from torch._dynamo.utils import counters

from edgewise.models.compile import _warn_uncompiled, compile_module, cpp_compiler


@pytest.fixture
def _no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    _warn_uncompiled.cache_clear()


def test_off_means_untouched():
    module = torch.nn.Linear(2, 2)
    assert compile_module(module, enabled=False) is module
    assert module._compiled_call_impl is None


@pytest.mark.usefixtures("_no_compiler")
def test_without_a_compiler_one_line_is_logged_and_all_runs_eagerly(caplog):
    module, function = torch.nn.Linear(2, 1), torch.sin
    with caplog.at_level(logging.WARNING):
        assert compile_module(module) is module
        assert compile_module(function) is function
    assert module._compiled_call_impl is None
    assert module(torch.ones(3, 2)).shape == (3, 1)
    (record,) = caplog.records
    assert "C++ compiler" in record.message
    assert "\n" not in record.message


@pytest.mark.usefixtures("_no_compiler")
def test_the_compiler_may_be_named(monkeypatch, tmp_path, caplog):
    compiler = tmp_path / "my-compiler"
    compiler.touch(mode=0o755)
    monkeypatch.setenv("CXX", str(compiler))
    module = compile_module(torch.nn.Linear(2, 1))
    assert module._compiled_call_impl is not None
    monkeypatch.setenv("CXX", "no-such-compiler")
    compile_module(torch.nn.Linear(2, 1))
    assert [record for record in caplog.records if "no-such-compiler" in record.message]


def test_a_compiled_module_keeps_its_names_and_its_copies_are_plain():
    module = compile_module(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    assert list(module.state_dict()) == ["0.weight", "0.bias"]
    assert copy.deepcopy(module)._compiled_call_impl is None


@pytest.mark.skipif(which(cpp_compiler()) is None, reason="no C++ compiler on this machine")
def test_compiled_once_and_equal_for_all_sizes():
    torch.compiler.reset()
    counters["stats"].clear()

    def gaussian(x):
        return (-x.square().sum(-1)).exp()

    compiled = compile_module(gaussian)
    for size in (5, 8, 13):
        x = torch.randn(size, 3)
        torch.testing.assert_close(compiled(x), gaussian(x))
    assert counters["stats"]["unique_graphs"] == 1
