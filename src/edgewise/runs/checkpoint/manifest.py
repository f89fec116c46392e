"""The manifest of a checkpoint folder, and the checks before any of its files is used."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError
from safetensors import SafetensorError, safe_open

from edgewise.config import files, sources
from edgewise.config.model import Config
from edgewise.runs import durable
from edgewise.runs.checkpoint import tensor_file

FORMAT: Literal["edgewise-checkpoint"] = "edgewise-checkpoint"
VERSION: Literal[1] = 1
MANIFEST = "manifest.json"
SEAL = "manifest.sha256"
SKELETON = "state.json"
LARGEST_JSON = 1 << 28
"""Largest accepted size of a JSON file, in bytes."""

T = TypeVar("T")
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,99}\.(json|safetensors)$")]
"""A plain file name without folders or a leading dot: it cannot refer to a file outside the checkpoint."""


class Unusable(Exception):  # noqa: N818 - internal, raised to the user as CheckpointError
    """A folder is not a usable checkpoint; the message gives the reason in one line."""


class FileEntry(Config):
    """One file of a checkpoint."""

    bytes: int = Field(ge=0)
    sha256: Digest


class TensorEntry(Config):
    """One tensor: in one file under its own name, or split into segments of raw bytes."""

    dtype: str
    shape: tuple[Annotated[int, Field(ge=0)], ...]
    file: FileName | None = None
    segments: tuple[FileName, ...] = ()


class Manifest(Config):
    """The content of `manifest.json`; its own SHA-256 is in the file beside it."""

    format: Literal["edgewise-checkpoint"] = FORMAT
    version: Literal[1] = VERSION
    step: int = Field(ge=0)
    files: dict[FileName, FileEntry]
    tensors: dict[str, TensorEntry]


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest and its seal into `folder`."""
    content = json.dumps(manifest.model_dump(mode="json", exclude_defaults=False), indent=1).encode()
    durable.write_whole(folder / MANIFEST, content)
    durable.write_whole(folder / SEAL, _seal(content))


def read(folder: Path) -> Manifest:
    """Read the manifest of a checkpoint folder, and check it apart from the files that it lists.

    Raises:
        Unusable: with the reason.
    """
    if not stat.S_ISDIR(_status(folder).st_mode):
        raise Unusable("it is not a folder")
    content = read_small(folder / MANIFEST)
    if read_small(folder / SEAL) != _seal(content):
        raise Unusable(f"{MANIFEST} does not match its SHA-256")
    manifest = _parse(content)
    _check_listing(folder, manifest)
    return manifest


def check_sizes(folder: Path, manifest: Manifest, names: Collection[str]) -> None:
    """Check that files exist, are regular and have the sizes of the manifest; raises `Unusable`."""
    for name in sorted(set(names) - set(os.listdir(folder))):
        raise Unusable(f"{name} is missing")
    for name in names:
        status, size = _status(folder / name), manifest.files[name].bytes
        if not stat.S_ISREG(status.st_mode):
            raise Unusable(f"{name} is not a regular file")
        if status.st_size != size:
            raise Unusable(f"{name} has {status.st_size} bytes instead of {size}")


def check_file(folder: Path, manifest: Manifest, name: str) -> None:
    """Compare one file with its SHA-256; raises `Unusable`."""
    try:
        digest = tensor_file.digest_of_file(folder / name)
    except OSError as error:
        raise Unusable(f"{name} cannot be read: {error.strerror or error}") from error
    if digest != manifest.files[name].sha256:
        raise Unusable(f"{name} does not match its SHA-256")


def check_tensors(folder: Path, manifest: Manifest, name: str) -> None:
    """Compare the header of one tensor file with the manifest's table; raises `Unusable`."""
    expected = {
        tensor: (tensor_file.FORMAT_NAMES[entry.dtype], list(entry.shape))
        for tensor, entry in manifest.tensors.items()
        if entry.file == name
    }
    found = read_header(folder / name)
    for tensor in sorted(found.keys() ^ expected.keys()):
        raise Unusable(f"{name} and {MANIFEST} disagree about whether there is a tensor {tensor}")
    for tensor, described in expected.items():
        if found[tensor] != described:
            raise Unusable(f"{tensor} in {name} is {found[tensor]}, {MANIFEST} says {described}")


def read_header(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Return dtype name and shape of each tensor in a safetensors file; raises `Unusable`."""
    try:
        with safe_open(sources.check(path), framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            return {name: (part.get_dtype(), list(part.get_shape())) for name, part in slices.items()}
    except (SafetensorError, OSError) as error:
        raise Unusable(f"{path.name} is not a safetensors file: {first_line(error)}") from error


def read_small(path: Path) -> bytes:
    """Read a regular file of at most `LARGEST_JSON` bytes; raises `Unusable`."""
    try:
        return files.read_bytes(path, largest=LARGEST_JSON, follow=False)
    except OSError as error:
        raise Unusable(f"{path.name} cannot be read: {error.strerror or error}") from error


def first_line(error: Exception) -> str:
    """Return the first line of the message of an exception."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _seal(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n"


def _status(path: Path) -> os.stat_result:
    try:
        return path.lstat()
    except OSError as error:
        raise Unusable(f"{path.name} cannot be read: {error.strerror or error}") from error


def _parse(content: bytes) -> Manifest:
    head = guarded(lambda: json.loads(content), MANIFEST)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise Unusable(f"{MANIFEST} is not of an edgewise checkpoint")
    if type(head.get("version")) is not int or head["version"] != VERSION:
        raise Unusable(
            f"its format version is {head.get('version')!r}, this edgewise reads version {VERSION}"
        )
    try:
        return Manifest.model_validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise Unusable(f"{MANIFEST}: {field}: {first['msg']}") from error


def guarded(parse: Callable[[], T], name: str) -> T:
    """Return `parse()`; exceptions caused by malformed JSON become `Unusable`."""
    try:
        return parse()
    except (ValueError, TypeError, RecursionError) as error:
        raise Unusable(f"{name} is malformed: {first_line(error)}") from error


def _check_listing(folder: Path, manifest: Manifest) -> None:
    for name in sorted(set(os.listdir(folder)) - {MANIFEST, SEAL, *manifest.files}):
        raise Unusable(f"{name} is not part of it")
    if SKELETON not in manifest.files:
        raise Unusable(f"{MANIFEST} lists no {SKELETON}")
    for tensor, stored in manifest.tensors.items():
        if (stored.file is None) == (not stored.segments):
            raise Unusable(f"{MANIFEST} does not say where {tensor} is")
        for part in (stored.file, *stored.segments):
            if part is not None and part not in manifest.files:
                raise Unusable(f"{MANIFEST} puts {tensor} into {part}, which it does not list")
        if stored.dtype not in tensor_file.FORMAT_NAMES:
            raise Unusable(f"{MANIFEST} gives {tensor} the unknown dtype {stored.dtype}")
