"""Inspect the fields of config classes, for help texts, flags, short names and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edgewise.config.layers import Path, dotted, value_at
from edgewise.config.model import AppliesIf, Config
from edgewise.config.wording import did_you_mean

MAX_LISTED = 30
"""Number of settings up to which an error lists all of them."""


@dataclass(frozen=True)
class Leaf:
    """A field that holds a value, not another config."""

    path: Path
    annotation: Any
    description: str
    default: Any

    @property
    def flag(self) -> str:
        """The command-line flag of the field."""
        return f"--{dotted(self.path).replace('_', '-')}"

    @property
    def type_in_words(self) -> str:
        """The type of the field, in words."""
        return type_in_words(self.annotation)


def leaves(schema: type[Config], values: Config | None = None, path: Path = ()) -> Iterator[Leaf]:
    """Yield every leaf of `schema` in order; defaults come from `values` if given.

    Settings that do not apply with these values are left out, and so are optional sections that are none.
    """
    return _leaves(schema, values, path, root=values)


def _leaves(
    schema: type[Config], values: Config | None, path: Path, *, root: Config | None
) -> Iterator[Leaf]:
    for name, field in schema.model_fields.items():
        if name in schema.decided:
            continue
        default = getattr(values, name) if values is not None else _default(field)
        inner = config_type(field.annotation)
        if root is not None and values is not None:
            is_absent = inner is not None and default is None
            if is_absent or why_unused(field, root, values):
                continue
        if inner is None:
            yield Leaf((*path, name), field.annotation, _description(schema, name), default)
        else:
            nested = default if isinstance(default, Config) else None
            yield from _leaves(type(nested) if nested else inner, nested, (*path, name), root=root)


def why_unused(field: FieldInfo, root: Config, section: Config) -> str:
    """Return why a setting has no effect with the values of a config; empty if it has."""
    marks = [mark for mark in field.metadata if isinstance(mark, AppliesIf)]
    return next((mark.words for mark in marks if not mark.test(root, section)), "")


def unused_settings(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield path and reason of every setting that is off its default and has no effect."""

    def within(section: Config, path: Path) -> Iterator[tuple[Path, str]]:
        for name, field in type(section).model_fields.items():
            value, reason = getattr(section, name), why_unused(field, config, section)
            if reason and value != _default(field):
                yield (*path, name), reason
            elif isinstance(value, Config):
                yield from within(value, (*path, name))

    return within(config, ())


def find(schema: type[Config], name: str) -> tuple[Path, Any] | str:
    """Return the path and annotation of the setting `name`, or the reason why there is none.

    `name` is a dotted path, or the last part of one if only one field has it. Names below a field that holds
    a mapping, such as `training.schedules`, are not checked here.
    """
    parts = tuple(name.replace("-", "_").split("."))
    if parts[0] in schema.model_fields:
        return _follow(schema, parts)
    known = list(leaves(schema))
    candidates = [leaf for leaf in known if leaf.path[-1] == parts[0]]
    if len(candidates) == 1:
        return (*candidates[0].path, *parts[1:]), candidates[0].annotation
    if candidates:
        return f"is the name of several fields; use {' or '.join(dotted(leaf.path) for leaf in candidates)}"
    names = [dotted(leaf.path) for leaf in known] + [str(leaf.path[-1]) for leaf in known]
    advice = did_you_mean(dotted(parts), list(dict.fromkeys(names)))
    if len(known) > MAX_LISTED and not advice.startswith("did"):
        advice = "`edgewise recipes show RECIPE` lists them"
    return f"unknown setting; {advice}"


def config_type(annotation: Any) -> type[Config] | None:
    """Return the config class of a section, which may be optional; None for any other field."""
    parts = [part for part in alternatives(annotation) if part is not NoneType]
    one = parts[0] if len(parts) == 1 else None
    return one if isinstance(one, type) and issubclass(one, Config) else None


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself, without `Annotated` metadata."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, UnionType):
        return (annotation,)
    return tuple(member for part in get_args(annotation) for member in alternatives(part))


def annotation_at(schema: type[Config], values: Mapping[str, Any], path: Path) -> Any:
    """Return the annotation at `path`; `values` select between the members of unions."""
    annotation: Any = schema
    for depth, part in enumerate(path):
        holder = member_of(annotation, value_at(values, path[:depth]))
        if holder is not None and part in holder.model_fields:
            annotation = holder.model_fields[str(part)].annotation
        else:
            held = [item for option in alternatives(annotation) for item in get_args(option)]
            annotation = None if not held else held[0] if isinstance(part, int) else held[-1]
    return annotation


def member_of(annotation: Any, value: Any) -> type[Config] | None:
    """Return the config class for `value`: the one with its `kind`, or else the first."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    members = [member for member in map(config_type, alternatives(annotation)) if member is not None]
    of_kind = [member for member in members if _kind(member) == kind]
    return next(iter(of_kind or members), None)


def kinds_of(annotation: Any) -> list[str]:
    """Return the values of `kind` that the annotation accepts."""
    return [_kind(member) for member in map(config_type, alternatives(annotation)) if member is not None]


def _kind(member: type[Config]) -> Any:
    return member.model_fields["kind"].default if "kind" in member.model_fields else None


def is_text(annotation: Any) -> bool:
    """Return whether the field accepts only text, or none."""
    kinds = [part for part in alternatives(annotation) if part is not NoneType]
    return all(part is str for part in kinds)


def allows_bool(annotation: Any) -> bool:
    """Return whether the field accepts booleans."""
    return annotation is Any or any(part in (bool, Any) for part in alternatives(annotation))


def allows_none(annotation: Any) -> bool:
    """Return whether the field accepts none."""
    return NoneType in alternatives(annotation)


def allows_list(annotation: Any) -> bool:
    """Return whether the field accepts lists."""
    return any(get_origin(part) in (list, tuple) for part in alternatives(annotation))


def is_list(annotation: Any) -> bool:
    """Return whether the field accepts only lists."""
    return all(get_origin(part) in (list, tuple) for part in alternatives(annotation))


_WORDS = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
    NoneType: "none",
    dict: "names",
}


def type_in_words(annotation: Any) -> str:
    """Describe the type of an annotation in plain words."""
    parts = [_one_type_in_words(part) for part in alternatives(annotation)]
    return " or ".join(dict.fromkeys(parts))


def _one_type_in_words(annotation: Any) -> str:
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


def _description(schema: type[Config], name: str) -> str:
    """Return the description of a field; a redefined field without one inherits it."""
    owners = [owner for owner in schema.__mro__ if issubclass(owner, Config) and name in owner.model_fields]
    descriptions = (owner.model_fields[name].description for owner in owners)
    return " ".join(next(filter(None, descriptions), "").split())


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else value


def _follow(schema: type[Config], parts: Path) -> tuple[Path, Any] | str:
    annotation: Any = schema
    for depth, part in enumerate(parts):
        inner = config_type(annotation)
        if inner is None:
            if _WORDS.get(annotation) is not None and annotation is not dict:
                return f"{dotted(parts[:depth])} holds a {type_in_words(annotation)}, and no names of its own"
            return parts, Any
        if part not in inner.model_fields:
            where = f"{dotted(parts[:depth])} has no field {part}"
            return f"{where}; {did_you_mean(str(part), list(inner.model_fields))}"
        annotation = inner.model_fields[str(part)].annotation
    return parts, annotation
