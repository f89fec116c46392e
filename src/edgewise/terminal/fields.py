"""Format the settings of a config as help: flag, type, default and description."""

from __future__ import annotations

import shutil
from textwrap import fill

from edgewise.config.layers import format_value
from edgewise.config.model import Config
from edgewise.config.schema import Leaf, leaves


def fields_help(config: Config, *, within: tuple[str, ...] = ()) -> str:
    """Format every setting under its section; defaults come from `config`, paths begin with `within`."""
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
    shown = default if isinstance(default, str) else format_value(default)
    width, indent = min(shutil.get_terminal_size().columns, 100), " " * 6
    description = fill(
        leaf.description, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return f"  {leaf.flag} <{leaf.type_in_words}> = {shown}\n{description}".rstrip()


def _plain(value: object) -> object:
    if isinstance(value, Config):
        return value.to_plain()
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
