"""The fields of a configuration: what help texts list, and what flags, short names and errors refer to."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edgewise.config.layers import Path, dotted, reach
from edgewise.config.model import Config
from edgewise.config.wording import did_you_mean

FEW = 30
"""Settings that an error can still list."""


@dataclass(frozen=True)
class Leaf:
    """One field that holds a value rather than more fields."""

    path: Path
    annotation: Any
    description: str
    default: Any

    @property
    def flag(self) -> str:
        """The flag that sets it."""
        return f"--{dotted(self.path).replace('_', '-')}"

    @property
    def kind(self) -> str:
        """What it holds, in words."""
        return kind_of(self.annotation)


def leaves(schema: type[Config], values: Config | None = None, path: Path = ()) -> Iterator[Leaf]:
    """Every leaf of `schema` in order, with the defaults of `values` where given."""
    for name, field in schema.model_fields.items():
        default = getattr(values, name) if values is not None else _default(field)
        inner = config_type(field.annotation)
        if inner is None:
            yield Leaf((*path, name), field.annotation, description_of(schema, name), default)
        else:
            nested = default if isinstance(default, Config) else None
            yield from leaves(type(nested) if nested else inner, nested, (*path, name))


def description_of(schema: type[Config], name: str) -> str:
    """What a field is for: the string below it, or its entry under "Attributes:" in the class's docstring."""
    for owner in schema.__mro__:
        below = _strings_below(owner) if issubclass(owner, Config) else {}
        if name in below:
            return below[name]
    section = (inspect.getdoc(schema) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    entry = re.search(rf"^ {{4}}{name}: (.*(?:\n {{8}}.*)*)", section, re.MULTILINE)
    return " ".join(entry[1].split()) if entry else ""


@cache
def _strings_below(owner: type) -> dict[str, str]:
    """The string that stands below each field in the source of a class."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def find(schema: type[Config], name: str) -> tuple[Path, Any] | str:
    """The path and annotation that `name` means, or why it means none.

    `name` is a dotted path, or a last name that only one field has. What follows a field that holds names of
    its own, such as `training.schedules`, belongs to that field and is not looked at here.
    """
    parts = tuple(name.replace("-", "_").split("."))
    if parts[0] in schema.model_fields:
        return _descend(schema, parts)
    known = list(leaves(schema))
    candidates = [leaf for leaf in known if leaf.path[-1] == parts[0]]
    if len(candidates) == 1:
        return (*candidates[0].path, *parts[1:]), candidates[0].annotation
    if candidates:
        return f"is the name of several fields; say {' or '.join(dotted(leaf.path) for leaf in candidates)}"
    names = [dotted(leaf.path) for leaf in known] + [str(leaf.path[-1]) for leaf in known]
    near = did_you_mean(dotted(parts), names)
    few = near if near.startswith("did") or len(known) <= FEW else "`edgewise recipes show RECIPE` lists them"
    return f"unknown setting; {few}"


def config_type(annotation: Any) -> type[Config] | None:
    """The config class that a field holds, if it holds just one."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, Config) else None


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation alone, without what is annotated to them."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, UnionType):
        return (annotation,)
    return tuple(member for part in get_args(annotation) for member in alternatives(part))


def annotation_at(schema: type[Config], values: Mapping[str, Any], path: Path) -> Any:
    """The annotation of the place that `path` leads to, given the values that choose between kinds."""
    annotation: Any = schema
    for depth, part in enumerate(path):
        holder = member_of(annotation, reach(values, path[:depth]))
        if holder is not None and part in holder.model_fields:
            annotation = holder.model_fields[str(part)].annotation
        else:
            held = [item for option in alternatives(annotation) for item in get_args(option)]
            annotation = None if not held else held[0] if isinstance(part, int) else held[-1]
    return annotation


def member_of(annotation: Any, value: Any) -> type[Config] | None:
    """The config class that a value at this place is one of: the one of its kind, or the first."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    members = [member for member in map(config_type, alternatives(annotation)) if member is not None]
    of_kind = [member for member in members if _kind(member) == kind]
    return next(iter(of_kind or members), None)


def kinds_of(annotation: Any) -> list[str]:
    """The kinds that a value at this place may have."""
    return [_kind(member) for member in map(config_type, alternatives(annotation)) if member is not None]


def _kind(member: type[Config]) -> Any:
    return member.model_fields["kind"].default if "kind" in member.model_fields else None


def takes_text_alone(annotation: Any) -> bool:
    """Whether whatever is typed is meant as text."""
    kinds = [part for part in alternatives(annotation) if part is not NoneType]
    return all(part is str for part in kinds)


def takes_truth(annotation: Any) -> bool:
    """Whether the field may be true."""
    return annotation is Any or any(part in (bool, Any) for part in alternatives(annotation))


def takes_nothing(annotation: Any) -> bool:
    """Whether the field may be left without a value."""
    return NoneType in alternatives(annotation)


def takes_list(annotation: Any) -> bool:
    """Whether the field may hold a list."""
    return any(get_origin(part) in (list, tuple) for part in alternatives(annotation))


def takes_list_alone(annotation: Any) -> bool:
    """Whether the field holds a list, whatever it holds."""
    return all(get_origin(part) in (list, tuple) for part in alternatives(annotation))


_WORDS = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
    NoneType: "none",
    dict: "names",
}


def kind_of(annotation: Any) -> str:
    """What a value of this annotation is, in words a user would say."""
    parts = [_kind_of_one(part) for part in alternatives(annotation)]
    return " or ".join(dict.fromkeys(parts))


def _kind_of_one(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(str(value) for value in get_args(annotation))
    if origin in (list, tuple):
        return "list"
    if origin is dict:
        return _WORDS[dict]
    if config_type(annotation) is not None:
        return "names"
    return _WORDS.get(annotation, getattr(annotation, "__name__", "value"))


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else value


def _descend(schema: type[Config], parts: Path) -> tuple[Path, Any] | str:
    annotation: Any = schema
    for depth, part in enumerate(parts):
        inner = config_type(annotation)
        if inner is None:
            if _WORDS.get(annotation) is not None and annotation is not dict:
                return f"{dotted(parts[:depth])} holds a {kind_of(annotation)}, and no names of its own"
            return parts, Any
        if part not in inner.model_fields:
            where = f"{dotted(parts[:depth])} has no field {part}"
            return f"{where}; {did_you_mean(str(part), list(inner.model_fields))}"
        annotation = inner.model_fields[str(part)].annotation
    return parts, annotation
