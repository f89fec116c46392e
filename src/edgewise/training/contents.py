"""The inside of one checkpoint folder: parts of the state as files, written once and checked before use."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from edgewise.training import durable, manifest, segments, serialise, tensor_file
from edgewise.training.manifest import SKELETON, FileEntry, Manifest, TensorEntry, Unusable
from edgewise.training.serialise import State

PART = re.compile(r"[a-z][a-z0-9_]*")


def write(stage: Path, state: Mapping[str, State], *, step: int, sources: Sequence[Path]) -> None:
    """Write every file of a checkpoint into the folder `stage`.

    Args:
        stage: an empty folder.
        state: parts by name.
        step: how far the run is.
        sources: older checkpoints, with which large tensors may share files.
    """
    files: dict[str, FileEntry] = {}
    table: dict[str, TensorEntry] = {}
    skeletons = {}
    for part, content in state.items():
        if not PART.fullmatch(part):
            raise TypeError(f"a part of the state is called {part!r}: use a-z, 0-9 and _")
        skeletons[part], tensors = serialise.flatten(content)
        named = {f"{part}/{name}" if name else part: tensor for name, tensor in tensors.items()}
        _write_part(stage, f"{part}.safetensors", named, files=files, table=table, sources=sources)
    text = json.dumps(skeletons, allow_nan=False).encode()
    durable.write_whole(stage / SKELETON, text)
    files[SKELETON] = FileEntry(bytes=len(text), sha256=tensor_file.digest_of_file(stage / SKELETON))
    manifest.write(stage, Manifest(step=step, files=files, tensors=table))


def _write_part(
    stage: Path,
    file: str,
    tensors: Mapping[str, Tensor],
    *,
    files: dict[str, FileEntry],
    table: dict[str, TensorEntry],
    sources: Sequence[Path],
) -> None:
    """Write the tensors of one part, large ones as segments, and enter them in `files` and `table`."""
    small = {}
    for name, tensor in tensors.items():
        face = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": tuple(tensor.shape)}
        if segments.is_large(tensor):
            cut = segments.write(stage, tensor, sources=sources)
            files.update(cut)
            table[name] = TensorEntry(**face, segments=tuple(segment for segment, _ in cut))
        else:
            small[name] = tensor
            table[name] = TensorEntry(**face, file=file)
    digest = tensor_file.write(stage / file, small)
    files[file] = FileEntry(bytes=tensor_file.size_of(small), sha256=digest)


def read(path: Path, parts: Collection[str] | None) -> dict[str, State]:
    """The state in a checkpoint folder, or some parts of it; raises `Unusable` before anything is loaded."""
    listed = manifest.read(path)
    manifest.check_file(path, listed, SKELETON)
    skeletons = manifest.guarded(lambda: json.loads(manifest.read_small(path / SKELETON)), SKELETON)
    if not isinstance(skeletons, dict):
        raise Unusable(f"{SKELETON} holds no parts")
    wanted = list(skeletons) if parts is None else list(parts)
    for part in wanted:
        if part not in skeletons or f"{part}.safetensors" not in listed.files:
            raise Unusable(f"it has no part {part}")
    for name in _files_of(listed, wanted):
        manifest.check_file(path, listed, name)
    for part in wanted:
        manifest.check_tensors(path, listed, f"{part}.safetensors")
    state = {}
    for part in wanted:
        tensors = _tensors(path, listed, part)
        state[part] = manifest.guarded(lambda: serialise.unflatten(skeletons[part], tensors), SKELETON)  # noqa: B023
    return state


def _files_of(listed: Manifest, parts: Collection[str]) -> list[str]:
    """The tensor files that hold `parts`, segments included."""
    owned = [entry for name, entry in listed.tensors.items() if name.split("/")[0] in parts]
    cut = (segment for entry in owned for segment in entry.segments)
    return [f"{part}.safetensors" for part in parts] + list(dict.fromkeys(cut))


def _tensors(path: Path, listed: Manifest, part: str) -> dict[str, Tensor]:
    """The tensors of one part by their names within it, copied out of the mapped file."""
    own = {name: entry for name, entry in listed.tensors.items() if name.split("/")[0] == part}
    found = {name: segments.read(path, entry) for name, entry in own.items() if entry.segments}
    try:
        with safe_open(path / f"{part}.safetensors", framework="pt") as file:
            for name, entry in own.items():
                if entry.file is not None:
                    found[name] = file.get_tensor(name).clone()
    except (SafetensorError, OSError) as error:
        raise Unusable(f"{part}.safetensors cannot be read: {manifest.first_line(error)}") from error
    return {name.partition("/")[2]: tensor for name, tensor in found.items()}


def fault(path: Path) -> str | None:
    """Why a checkpoint cannot be used, judged by its files' hashes; None where it can."""
    try:
        listed = manifest.read(path)
        for name in listed.files:
            manifest.check_file(path, listed, name)
    except Unusable as cause:
        return str(cause)
    return None
