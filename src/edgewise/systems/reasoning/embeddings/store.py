"""Save and load trained embeddings: a safetensors file and a manifest.

The manifest is written last and holds the SHA-256 of the tensors, so that an incomplete folder is rejected.
It also holds the digest of the vocabulary, so that embeddings are only used with the names of their training.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of

from edgewise.config import files
from edgewise.config.errors import CheckpointError
from edgewise.runs import durable
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

TENSORS = "model.safetensors"
MANIFEST = "manifest.json"
FORMAT = "edgewise-kge"
VERSION = 1
MOST_ROWS = 1 << 31
"""Most entities, and most predicates, that are accepted."""


def save_kge(
    folder: Path,
    model: KnowledgeEmbedding,
    *,
    vocabulary: Vocabulary,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the model to `folder`, and replace one that is there.

    Args:
        folder: created if it does not exist.
        model: the trained model.
        vocabulary: vocabulary of its rows.
        about: plain values to store in the manifest, such as figures and settings.

    Raises:
        CheckpointError: the folder cannot be written.
    """
    content = bytes_of(
        {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    )
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "embedding": model.config.to_plain(),
        "num_entities": vocabulary.num_entities,
        "num_predicates": vocabulary.num_predicates,
        "vocabulary": vocabulary.digest,
        "sha256": hashlib.sha256(content).hexdigest(),
        "about": dict(about or {}),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        durable.replace_whole(folder / TENSORS, content)
        durable.replace_whole(folder / MANIFEST, f"{json.dumps(manifest, indent=2)}\n".encode())
    except OSError as error:
        raise CheckpointError(f"cannot save embeddings to {folder}: {error.strerror or error}") from error


def load_kge(
    folder: str | Path, *, vocabulary: Vocabulary | None = None, device: torch.device | str = "cpu"
) -> KnowledgeEmbedding:
    """Load the model saved in `folder`, in evaluation mode and without gradients.

    Args:
        folder: folder written by `save_kge`.
        vocabulary: vocabulary of the atoms to score; must equal that of training.
        device: device of the model.

    Raises:
        CheckpointError: there is no model, it is damaged, or its vocabulary differs.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    if vocabulary is not None and manifest["vocabulary"] != vocabulary.digest:
        there = f"{manifest['num_entities']:,} entities and {manifest['num_predicates']:,} predicates"
        here = f"{vocabulary.num_entities:,} and {vocabulary.num_predicates:,}"
        raise CheckpointError(
            f"the embeddings in {place} have another vocabulary: {there} there, {here} here",
            hint="train embeddings on this data with `edgewise reasoning kge`",
        )
    content = _read(place / TENSORS)
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise CheckpointError(f"{place / TENSORS} is not what {MANIFEST} describes", hint="train it again")
    try:
        with torch.device("meta"):  # sizes are compared before anything is allocated
            model = KnowledgeEmbedding(
                EmbeddingConfig.from_plain(manifest["embedding"]),
                num_entities=manifest["num_entities"],
                num_predicates=manifest["num_predicates"],
            )
        model.load_state_dict(tensors_of(content), assign=True)
    except (ValidationError, SafetensorError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise CheckpointError(f"the embeddings in {place} cannot be used: {first}") from error
    return model.to(device).eval().requires_grad_(False)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest in `folder`.

    Raises:
        CheckpointError: it is missing, or not a manifest of embeddings that this version reads.
    """
    path = folder / MANIFEST
    try:
        manifest = files.parse_json(_read(path).decode())
    except ValueError as error:
        raise CheckpointError(f"{path} is malformed: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is not a manifest of embeddings",
            hint="give a folder written by `edgewise reasoning kge`",
        )
    if manifest.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has version {manifest.get('version')!r}, this edgewise reads {VERSION}"
        )
    kinds = {"vocabulary": str, "sha256": str, "embedding": dict}
    usable = {name: isinstance(manifest.get(name), kind) for name, kind in kinds.items()}
    for name in ("num_entities", "num_predicates"):
        count = manifest.get(name)
        usable[name] = type(count) is int and 0 < count <= MOST_ROWS
    for name, is_usable in usable.items():
        if not is_usable:
            raise CheckpointError(f"{path} has no usable {name}", hint="train it again")
    return manifest


def _read(path: Path) -> bytes:
    try:
        return files.read_bytes(path, largest=files.LARGEST_TENSORS)
    except OSError as error:
        hint = "give a folder written by `edgewise reasoning kge`"
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}", hint=hint) from error
