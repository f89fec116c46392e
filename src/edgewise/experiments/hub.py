"""Packed policies on the Hugging Face hub, pushed with a card and pulled. Never imports torch."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError, DataError
from edgewise.runs.zoo import CARD, Card, read_card

LARGEST = 2**30
"""Bytes of a policy that are downloaded at most."""
FILES = ["*.json", "*.jsonl", "*.csv", "checkpoints/*", "evaluations/*.json", "replays/*.json"]
"""What a packed run holds; nothing else is uploaded or downloaded."""
NAME = re.compile(r"[\w.-]+/[\w.-]+")


def push(folder: Path, name: str, *, private: bool = False) -> str:
    """Upload a packed run as a model repository, which is created if it is not there; return its address.

    Args:
        folder: as `edgewise pack` writes it.
        name: OWNER/NAME.
        private: whether a new repository is private.

    Raises:
        ConfigError: the folder is not packed, or huggingface_hub is missing.
        DataError: the hub refused it.
    """
    _check_name(name)
    if not (folder / CARD).is_file():
        raise ConfigError(f"{folder}: is not packed", hint=f"edgewise pack {folder} --out FOLDER")
    card, hub = read_card(folder), _library()
    api = hub.HfApi()
    try:
        api.create_repo(name, private=private, exist_ok=True)
        api.upload_file(
            path_or_fileobj=io.BytesIO(page(card, name).encode()), path_in_repo="README.md", repo_id=name
        )
        api.upload_folder(repo_id=name, folder_path=folder, allow_patterns=FILES, commit_message=card.summary)
    except Exception as error:  # the library and its HTTP client have errors of their own
        raise _refused(name, error) from error
    return f"{api.endpoint}/{name}"


def pull(name: str, target: Path, *, revision: str | None = None) -> Path:
    """Download a packed run into a new folder; `edgewise verify` checks its files.

    Args:
        name: OWNER/NAME.
        target: folder to create.
        revision: branch, tag or commit; the newest if not given.

    Raises:
        ConfigError: the folder exists, or huggingface_hub is missing.
        DataError: the hub has no such repository, or it holds no packed run.
    """
    _check_name(name)
    if target.exists():
        raise ConfigError(f"{target}: exists already", hint="give another --out, or delete it")
    hub = _library()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as staging:
        place = Path(staging, "pulled")
        try:
            files = hub.HfApi().repo_info(name, revision=revision, files_metadata=True).siblings or []
            size = sum(file.size or 0 for file in files)
            if size <= LARGEST:
                hub.snapshot_download(name, revision=revision, local_dir=place, allow_patterns=FILES)
        except Exception as error:  # the library and its HTTP client have errors of their own
            raise _refused(name, error) from error
        if size > LARGEST:
            raise DataError(f"{name}: has {size:,} bytes, more than the {LARGEST:,} that are accepted")
        shutil.rmtree(place / ".cache", ignore_errors=True)
        if not (place / CARD).is_file():
            raise DataError(f"{name}: holds no policy of edgewise: it has no {CARD}")
        read_card(place)
        place.rename(target)
    return target


def page(card: Card, name: str) -> str:
    """Return the README of a repository: what the hub reads, what the policy does, and how to use it."""
    figures = "\n".join(
        f"| {one.policy} | {one.settings or ''} | {one.measure} | {one.text()} |" for one in card.figures
    )
    local = name.partition("/")[2]
    return f"""---
library_name: edgewise
pipeline_tag: reinforcement-learning
tags: [reinforcement-learning, graph-neural-networks, edgewise, {card.environment}]
---

# {card.name}

{card.summary}. Trained in `{card.environment}` with `{card.algorithm}` by
`{card.command}` ({card.frames:,} frames).

```console
pip install "edgewise[hub]"
edgewise hub pull {name} --out {local}
edgewise eval {local}
```

| policy | settings | measure | mean with 95 % interval |
|---|---|---|---|
{figures}
"""


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfigError(f"got {name}, expected a repository as OWNER/NAME")


def _library() -> Any:
    try:
        return import_module("huggingface_hub")
    except ImportError as error:
        raise ConfigError("the hub needs huggingface_hub", hint="pip install 'edgewise[hub]'") from error


def _refused(name: str, error: Exception) -> DataError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return DataError(f"{name}: {reason}", hint="check name and connection; `hf auth login` signs in")
