"""Undoes what plug-ins leave in a process; for tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgewise.plugins import addresses, registry, trust
from edgewise.plugins.places import is_installed, real_file


@contextmanager
def isolated() -> Iterator[None]:
    """Allow nothing at first, and undo at the end what the block has imported, registered and allowed.

    Modules of Python, of installed packages and of edgewise stay imported.

    Example:
        >>> with isolated():
        ...     module = use_plugin("tsp.py")
    """
    modules, path = set(sys.modules), list(sys.path)
    tables: list[dict[Any, Any]] = [addresses._imported, trust._files, trust._modules, trust._clusters]
    tables += [table for each in registry._registered.values() for table in (each.names, each.addresses)]
    kept = [dict(table) for table in tables]
    trust.forget()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = real_file(sys.modules[name])
            if file is not None and not is_installed(file):
                del sys.modules[name]
        for table, before in zip(tables, kept, strict=True):
            table.clear()
            table.update(before)
        registry.declared.cache_clear()
