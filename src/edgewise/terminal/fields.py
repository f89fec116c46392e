"""The settings of a config as help: each with its flag, what it holds, its default and what it is for."""

from __future__ import annotations

import shutil
from textwrap import fill

from edgewise.config.layers import shown
from edgewise.config.model import Config
from edgewise.config.schema import Leaf, leaves


def fields_help(config: Config, *, within: tuple[str, ...] = ()) -> str:
    """Every setting under the heading of its section, defaults as in `config`, which is `within` a run."""
    lines: list[str] = []
    section: tuple[str | int, ...] | None = None
    for leaf in leaves(type(config), config, within):
        if leaf.path[:-1] != section:
            section = leaf.path[:-1]
            lines.append(f"\n{'.'.join(map(str, section)) or 'the run'}:")
        lines.append(_entry(leaf))
    return "\n".join(lines)


def _entry(leaf: Leaf) -> str:
    default = leaf.default
    if isinstance(default, tuple | dict):
        default = [_plain(item) for item in default] if isinstance(default, tuple) else _plain(default)
    width = min(shutil.get_terminal_size().columns, 100)
    head = f"  {leaf.flag} <{leaf.kind}> = {shown(default) if not isinstance(default, str) else default}"
    return (
        f"{head}\n{fill(leaf.description, width, initial_indent=' ' * 6, subsequent_indent=' ' * 6)}".rstrip()
    )


def _plain(value: object) -> object:
    if isinstance(value, Config):
        return value.to_plain()
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
