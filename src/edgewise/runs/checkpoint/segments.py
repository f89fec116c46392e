"""Store large tensors as segments that checkpoints share: unchanged segments are linked, not rewritten.

A replay buffer of many gigabytes changes by a few per cent between two checkpoints. Its bytes are split into
segments, each a safetensors file named by its SHA-256. A segment that an older checkpoint already has becomes
a hard link to the same file, which needs no write and no space. Deleting the older checkpoint does not affect
the newer. A damaged file would spoil every checkpoint that shares it. So its content is compared with its
SHA-256 before it is linked, and a new checkpoint shares nothing with the best and with the one before it: it
links to the last but one. On loading, segments are concatenated in an unnamed file and memory-mapped.
"""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from edgewise.config import files
from edgewise.runs.checkpoint import tensor_file
from edgewise.runs.checkpoint.manifest import FileEntry, TensorEntry, Unusable, read_header
from edgewise.runs.durable import write_fully

LARGE = 1 << 26
"""Tensors of more bytes than this are split into segments of this many bytes."""
ENTRY = "bytes"
"""The name of the one tensor in a segment."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sources:
    """Older checkpoints whose segments a new one may share.

    Args:
        folders: of the checkpoints, the preferred first.
        apart: checkpoints with which no file may be shared, directly or through another checkpoint.
    """

    folders: Sequence[Path] = ()
    apart: Sequence[Path] = ()
    _damaged: dict[str, list[Path]] = field(default_factory=dict)
    _excluded: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for folder in self.apart:
            self._excluded.update(map(_inode, folder.glob("segment-*.safetensors")))

    def link(self, path: Path, digest: str) -> bool:
        """Hard-link `path` to a file of the same name with the SHA-256 `digest`, if there is one."""
        for folder in self.folders:
            older = folder / path.name
            try:
                if _inode(older) in self._excluded:
                    continue
                if tensor_file.digest_of_file(older) == digest:
                    os.link(older, path, follow_symlinks=False)
                    return True
            except FileNotFoundError:
                continue
            except FileExistsError:
                return True
            except OSError as error:
                log.warning("%s cannot be shared: %s", older, error.strerror or error)
                continue
            self._damaged.setdefault(path.name, []).append(older)
        return False

    def repair(self, path: Path) -> None:
        """Replace the damaged files that `link` found by links to `path`."""
        damaged = self._damaged.pop(path.name, [])
        if damaged:
            names = ", ".join(older.parent.name for older in damaged)
            log.warning("%s is damaged in %s, and is written again: check this disk", path.name, names)
        for older in damaged:
            staging = older.parent.with_name(f".stage-{older.name}")
            try:
                staging.unlink(missing_ok=True)
                os.link(path, staging)
                os.rename(staging, older)
            except OSError as error:
                log.warning("%s cannot be replaced: %s", older, error.strerror or error)


def is_large(tensor: Tensor) -> bool:
    """Return whether `tensor` is stored as segments: it is large, contiguous and on the CPU."""
    in_memory = tensor.device.type == "cpu" and tensor.is_contiguous()
    return in_memory and tensor.numel() * tensor.element_size() > LARGE


def write(folder: Path, tensor: Tensor, *, sources: Sources) -> list[tuple[str, FileEntry]]:
    """Write the segments of `tensor` into `folder` and return them in order; equal segments share a file.

    Args:
        folder: the checkpoint being written.
        tensor: any shape, contiguous, in memory or mapped.
        sources: older checkpoints.
    """
    flat = tensor_file.as_bytes(tensor)
    written = []
    for start in range(0, flat.numel(), LARGE):
        content = {ENTRY: flat[start : start + LARGE]}
        digest = tensor_file.digest_of(content)
        path = folder / f"segment-{digest}.safetensors"
        size = tensor_file.size_of(content)
        if not path.exists():
            if not sources.link(path, digest):
                with suppress(FileExistsError):  # another process has the same segment, and writes it
                    tensor_file.write(path, content)
            sources.repair(path)
        written.append((path.name, FileEntry(bytes=size, sha256=digest)))
    return written


def read(folder: Path, entry: TensorEntry) -> Tensor:
    """Concatenate the segments of a tensor in an unnamed file, and memory-map it; raises `Unusable`."""
    dtype = tensor_file.TORCH_DTYPES[entry.dtype]
    size = torch.Size(entry.shape).numel() * dtype.itemsize
    with tempfile.TemporaryFile(dir=folder.parent if os.access(folder.parent, os.W_OK) else None) as scratch:
        for name in entry.segments:
            _append_payload(folder / name, scratch.fileno())
        found = os.fstat(scratch.fileno()).st_size
        if found != size or size == 0:
            raise Unusable(f"the segments of a tensor have {found} bytes in total instead of {size}")
        mapped = mmap.mmap(scratch.fileno(), size)
    return torch.frombuffer(mapped, dtype=dtype).view(entry.shape)


def _inode(path: Path) -> tuple[int, int]:
    """Return what identifies a file whatever its name."""
    status = path.lstat()
    return status.st_dev, status.st_ino


def _append_payload(path: Path, target: int) -> None:
    """Append the bytes after the header of one segment to the file `target`."""
    if read_header(path).keys() != {ENTRY}:
        raise Unusable(f"{path.name} is not a segment of a tensor")
    source = files.open_to_read(path, largest=files.LARGEST_TENSORS, follow=False)
    try:
        length = int.from_bytes(os.read(source, 8), "little")
        os.lseek(source, 8 + length, os.SEEK_SET)
        while piece := os.read(source, tensor_file.CHUNK):
            write_fully(target, piece)
    finally:
        os.close(source)
