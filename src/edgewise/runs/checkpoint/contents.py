"""Read and write the files of one checkpoint folder; they are written once and checked before use."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from edgewise.config import sources
from edgewise.runs import durable
from edgewise.runs.checkpoint import manifest, segments, serialise, tensor_file
from edgewise.runs.checkpoint.manifest import SKELETON, FileEntry, Manifest, TensorEntry, Unusable
from edgewise.runs.checkpoint.segments import Sources
from edgewise.runs.checkpoint.serialise import State

PART = re.compile(r"[a-z][a-z0-9_]*")


def write(staging: Path, state: Mapping[str, State], *, sources: Sources) -> dict[str, Any]:
    """Write the parts of a process into the folder `staging`; `seal` then completes the checkpoint.

    Args:
        staging: a folder; several processes may write into it at the same time.
        state: parts by name.
        sources: older checkpoints, with which large tensors may share files.

    Returns:
        What was written, as plain values.
    """
    listed = Manifest(step=0, files={}, tensors={})
    skeletons = {}
    for part, content in state.items():
        if not PART.fullmatch(part):
            raise TypeError(f"a part of the state is called {part!r}: use a-z, 0-9 and _")
        skeletons[part], tensors = serialise.flatten(content)
        named = {f"{part}/{name}" if name else part: tensor for name, tensor in tensors.items()}
        _write_part(staging, _file_of(part), named, listed=listed, sources=sources)
    return {**listed.model_dump(mode="json", include={"files", "tensors"}), "skeletons": skeletons}


def seal(staging: Path, written: Sequence[Mapping[str, Any]], *, step: int) -> None:
    """Write the nesting of the state and the manifest of a checkpoint.

    Args:
        staging: the folder.
        written: what `write` returned in each process.
        step: step of the run.
    """
    files, tensors, skeletons = (
        {name: entry for each in written for name, entry in each[kind].items()}
        for kind in ("files", "tensors", "skeletons")
    )
    listed = Manifest.model_validate({"step": step, "files": files, "tensors": tensors})
    text = json.dumps(skeletons, allow_nan=False).encode()
    durable.write_whole(staging / SKELETON, text)
    listed.files[SKELETON] = FileEntry(bytes=len(text), sha256=hashlib.sha256(text).hexdigest())
    manifest.write(staging, listed)


def read(path: Path, parts: Collection[str] | None) -> dict[str, State]:
    """Return the state in a checkpoint folder, or some parts of it; raises `Unusable` before loading."""
    listed, skeletons = _checked(path, parts)
    return {
        part: _read_part(path, listed, part=part, skeleton=skeleton) for part, skeleton in skeletons.items()
    }


def fault(path: Path, parts: Collection[str] | None = None) -> str | None:
    """Return why a checkpoint cannot be used, according to the hashes of its files, or None if it can.

    Args:
        path: its folder.
        parts: names of the parts that are wanted; files of others are not read.
    """
    try:
        _checked(path, parts)
    except Unusable as cause:
        return str(cause)
    return None


def _checked(path: Path, parts: Collection[str] | None) -> tuple[Manifest, dict[str, Any]]:
    """Check the files of the wanted parts; return the manifest and the nesting of each part."""
    listed = manifest.read(path)
    files = list(listed.files) if parts is None else [SKELETON, *_files_of(listed, parts)]
    manifest.check_sizes(path, listed, files)
    manifest.check_file(path, listed, SKELETON)
    skeletons = manifest.guarded(lambda: json.loads(manifest.read_small(path / SKELETON)), SKELETON)
    if not isinstance(skeletons, dict):
        raise Unusable(f"{SKELETON} holds no parts")
    wanted = list(skeletons) if parts is None else list(parts)
    for part in wanted:
        if part not in skeletons:
            raise Unusable(f"it has no part {part}")
    for name in files:
        if name != SKELETON:
            manifest.check_file(path, listed, name)
    for part in wanted:
        if _file_of(part) in listed.files:
            manifest.check_tensors(path, listed, _file_of(part))
    return listed, {part: skeletons[part] for part in wanted}


def _write_part(
    staging: Path, file: str, tensors: Mapping[str, Tensor], *, listed: Manifest, sources: Sources
) -> None:
    """Write the tensors of one part, large ones as segments, and list them in the manifest."""
    small = {}
    for name, tensor in tensors.items():
        description = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": tuple(tensor.shape)}
        if segments.is_large(tensor):
            cut = segments.write(staging, tensor, sources=sources)
            listed.files.update(cut)
            listed.tensors[name] = TensorEntry(**description, segments=tuple(segment for segment, _ in cut))
        else:
            small[name] = tensor
            listed.tensors[name] = TensorEntry(**description, file=file)
    if small:
        digest = tensor_file.write(staging / file, small)
        listed.files[file] = FileEntry(bytes=tensor_file.size_of(small), sha256=digest)


def _read_part(path: Path, listed: Manifest, *, part: str, skeleton: Any) -> State:
    """Read one part of the state; its small tensors are copied out of the mapped file."""
    own = _entries_of(listed, [part])
    found = {name: segments.read(path, entry) for name, entry in own.items() if entry.segments}
    small = [name for name, entry in own.items() if not entry.segments]
    if small:
        try:
            with safe_open(sources.check(path / _file_of(part)), framework="pt") as file:
                found |= {name: file.get_tensor(name).clone() for name in small}
        except (SafetensorError, OSError) as error:
            raise Unusable(f"{_file_of(part)} cannot be read: {manifest.first_line(error)}") from error
    tensors = {name.partition("/")[2]: tensor for name, tensor in found.items()}
    return manifest.guarded(lambda: serialise.unflatten(skeleton, tensors), SKELETON)


def _file_of(part: str) -> str:
    return f"{part}.safetensors"


def _entries_of(listed: Manifest, parts: Collection[str]) -> dict[str, TensorEntry]:
    return {name: entry for name, entry in listed.tensors.items() if name.split("/")[0] in parts}


def _files_of(listed: Manifest, parts: Collection[str]) -> list[str]:
    """Return the tensor files of `parts`, including segments."""
    cut = (segment for entry in _entries_of(listed, parts).values() for segment in entry.segments)
    return [file for file in map(_file_of, parts) if file in listed.files] + list(dict.fromkeys(cut))
