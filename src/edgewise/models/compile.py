"""Compile modules, or run them uncompiled on machines without a C++ compiler."""

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
    """Compile a module or a function once for all sizes.

    Call the result with tensors or plain dicts of tensors. A TensorDict would be compiled again for every
    batch size, because its batch size is a Python value. (`union` and edge sources also take a plain dict.)

    A module is compiled in place and returned, so its parameters keep their names in checkpoints; copies of
    it are not compiled. The first call compiles: 10 to 20 seconds, or under a second from inductor's cache on
    disk. Without a C++ compiler, a warning is logged once and the target is returned unchanged.

    Args:
        target: a module or a function of tensors.
        enabled: False returns the target unchanged.
    """
    if not enabled:
        return target
    compiler = cpp_compiler()
    if shutil.which(compiler) is None:
        _warn_uncompiled(compiler)
        return target
    if isinstance(target, nn.Module):
        target.compile(dynamic=True)
        return target
    return cast(Compilable, torch.compile(target, dynamic=True))


def cpp_compiler() -> str:
    """Return the C++ compiler that inductor calls: the value of `CXX`, or the platform's default."""
    return os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")


@cache
def _warn_uncompiled(compiler: str) -> None:
    """Warn once per process that nothing is compiled."""
    _logger.warning(
        "compile is on but the C++ compiler %r is not found: running uncompiled, which is slower but gives "
        "equal results; install it, or set CXX to another compiler",
        compiler,
    )
