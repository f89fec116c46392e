"""Store large tensors as segments that checkpoints share: unchanged segments are linked, not rewritten.

A replay buffer of many gigabytes changes by a few per cent between two checkpoints. Its bytes are split into
segments, each a safetensors file named by its SHA-256. A segment that an older checkpoint already has becomes
a hard link to the same file, which needs no write and no space. Files are never changed once written, so a
link is as safe as a copy, and deleting the older checkpoint does not affect the newer. On loading, segments
are concatenated in an unnamed file and memory-mapped.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from edgewise.training.checkpoint import tensor_file
from edgewise.training.checkpoint.manifest import FileEntry, TensorEntry, Unusable, read_header
from edgewise.training.durable import open_plain, write_fully

LARGE = 1 << 26
"""Tensors of more bytes than this are split into segments of this many bytes."""
ENTRY = "bytes"
"""The name of the one tensor in a segment."""


def is_large(tensor: Tensor) -> bool:
    """Return whether `tensor` is stored as segments: it is large, contiguous and on the CPU."""
    in_memory = tensor.device.type == "cpu" and tensor.is_contiguous()
    return in_memory and tensor.numel() * tensor.element_size() > LARGE


def write(folder: Path, tensor: Tensor, *, sources: Sequence[Path]) -> list[tuple[str, FileEntry]]:
    """Write the segments of `tensor` into `folder` and return them in order; equal segments share a file.

    Args:
        folder: the checkpoint being written.
        tensor: any shape, contiguous, in memory or mapped.
        sources: older checkpoints to share segments with.
    """
    flat = tensor_file.as_bytes(tensor)
    written = []
    for start in range(0, flat.numel(), LARGE):
        content = {ENTRY: flat[start : start + LARGE]}
        digest = tensor_file.digest_of(content)
        path = folder / f"segment-{digest}.safetensors"
        size = tensor_file.size_of(content)
        if not path.exists() and not _link(path, sources, size):
            tensor_file.write(path, content)
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


def _link(path: Path, sources: Sequence[Path], size: int) -> bool:
    """Hard-link `path` to the file of the same name and size in the first source that has it."""
    for source in sources:
        older = source / path.name
        try:
            if older.lstat().st_size == size:
                os.link(older, path, follow_symlinks=False)
                return True
        except OSError:
            continue
    return False


def _append_payload(path: Path, target: int) -> None:
    """Append the bytes after the header of one segment to the file `target`."""
    if read_header(path).keys() != {ENTRY}:
        raise Unusable(f"{path.name} is not a segment of a tensor")
    source = open_plain(path)
    try:
        length = int.from_bytes(os.read(source, 8), "little")
        os.lseek(source, 8 + length, os.SEEK_SET)
        while piece := os.read(source, tensor_file.CHUNK):
            write_fully(target, piece)
    finally:
        os.close(source)
