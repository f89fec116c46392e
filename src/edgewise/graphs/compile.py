"""Compilation that a machine without a C++ compiler survives."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import torch
from torch import nn

_logger = logging.getLogger(__name__)

Compilable = TypeVar("Compilable", bound=Callable[..., Any])


def compile_module(target: Compilable, *, enabled: bool = True) -> Compilable:
    """A module or a function that runs compiled, once for all sizes.

    Give it tensors or plain dicts of them: the batch size of a TensorDict is a Python value, for each of
    which the target would be compiled anew. (`union` and edge sources take a graph as a plain dict too.)

    A module is compiled in place and returned, so that its parameters keep their names in checkpoints; a copy
    of it is not compiled. The first call compiles (10 to 20 seconds, under a second from inductor's cache on
    disk). Where no C++ compiler is found, one line is logged and the target comes back as it was.

    Args:
        target: a module or a function of tensors.
        enabled: false gives the target back as it was.
    """
    if not enabled:
        return target
    compiler = cpp_compiler()
    if shutil.which(compiler) is None:
        _say_eager(compiler)
        return target
    if isinstance(target, nn.Module):
        target.compile(dynamic=True)
        return target
    return cast(Compilable, torch.compile(target, dynamic=True))


def cpp_compiler() -> str:
    """The C++ compiler that inductor will call: what `CXX` names, or the platform's own."""
    return os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")


@cache
def _say_eager(compiler: str) -> None:
    """Say once per process that nothing is compiled."""
    _logger.warning(
        "compile is on but the C++ compiler %r is not found: running uncompiled, which is slower but equal; "
        "install it, or name another in CXX",
        compiler,
    )
