"""Download public knowledge graphs from their original sources and verify them."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from edgewise.config.errors import DataError

SPLITS = ("train", "valid", "test")
LARGEST = 1 << 28
"""Maximum size in bytes of an archive or a file in it."""
TIMEOUT = 60.0
"""Timeout of a download in seconds."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """Source and checksums of a dataset.

    Args:
        url: URL of a tar archive with `train.txt`, `valid.txt` and `test.txt`.
        lines: number of lines of each split.
        sha256: SHA-256 of each split, where known, with the line ends of the archive.
    """

    url: str
    lines: Mapping[str, int]
    sha256: Mapping[str, str]


SOURCES = {
    "wn18rr": Source(
        url="https://github.com/TimDettmers/ConvE/raw/master/WN18RR.tar.gz",
        lines={"train": 86_835, "valid": 3_034, "test": 3_134},
        sha256={
            "train": "038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df",
            "valid": "453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab",
            "test": "0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5",
        },
    ),
    "fb15k-237": Source(
        url="https://github.com/TimDettmers/ConvE/raw/master/FB15k-237.tar.gz",
        lines={"train": 272_115, "valid": 17_535, "test": 20_466},
        sha256={},
    ),
}


def download(name: str, folder: Path, *, source: Source | None = None) -> Path:
    """Download the dataset `name` into `folder`. Nothing is written on failure.

    Args:
        name: a key of `SOURCES`, or any name if a source is given.
        folder: created; a folder that already holds `train.txt` is left unchanged.
        source: where to download from; the entry of `SOURCES` if not given.

    Returns:
        The folder. Beside the splits it holds `source.json`, with the URL and the SHA-256 of each file.

    Raises:
        DataError: the name is unknown, the download fails, or its content is not the dataset.
    """
    if (folder / "train.txt").exists():
        log.info("%s already exists", folder)
        return folder
    if folder.exists():
        raise DataError(f"{folder} exists and holds no train.txt", hint="give a folder that does not exist")
    source = source or _source(name)
    log.info("downloading %s from %s", name, source.url)
    files = _splits(_fetch(source.url), source.url)
    for split in SPLITS:
        _check(split, files[split], source)
    _write(folder, files, source)
    return folder


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise DataError(f"no public dataset is called {name}", hint=f"there are {', '.join(SOURCES)}")
    return SOURCES[name]


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            content: bytes = answer.read(LARGEST + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        hint = "check the network, or download the files by hand and give their folder"
        raise DataError(f"{url} cannot be downloaded: {reason}", hint=hint) from error
    if len(content) > LARGEST:
        raise DataError(f"{url} is larger than {LARGEST:,} bytes", hint="this is not the dataset")
    return content


def _splits(archive: bytes, url: str) -> dict[str, bytes]:
    """Read the three splits of an archive; if a name occurs twice, the one closest to the root."""
    files: dict[str, tuple[int, bytes]] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                split, depth = path.stem, len(path.parts)
                wanted = member.isfile() and path.suffix == ".txt" and split in SPLITS
                if not wanted or member.size > LARGEST or (split in files and files[split][0] <= depth):
                    continue
                opened = tar.extractfile(member)
                assert opened is not None
                files[split] = depth, opened.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{url} is no whole tar archive: {error}", hint="try again later") from error
    missing = [f"{split}.txt" for split in SPLITS if split not in files]
    if missing:
        raise DataError(f"{url} holds no {', '.join(missing)}", hint="this is not the dataset")
    return {split: content for split, (_, content) in files.items()}


def _check(split: str, content: bytes, source: Source) -> None:
    lines = len(content.splitlines())
    if lines != source.lines[split]:
        message = f"{split}.txt of {source.url} has {lines:,} lines instead of {source.lines[split]:,}"
        raise DataError(message, hint="the dataset has changed; download it by hand and check it")
    found = hashlib.sha256(content).hexdigest()
    if source.sha256.get(split, found) != found:
        message = f"{split}.txt of {source.url} has SHA-256 {found} instead of {source.sha256[split]}"
        raise DataError(message, hint="the dataset has changed; download it by hand and check it")


def _write(folder: Path, files: Mapping[str, bytes], source: Source) -> None:
    """Write the files to a temporary folder and rename it."""
    stage = folder.with_name(f".{folder.name}.stage")
    digests = {f"{split}.txt": hashlib.sha256(content).hexdigest() for split, content in files.items()}
    try:
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir(parents=True)
        for split, content in files.items():
            (stage / f"{split}.txt").write_bytes(content)
        (stage / "source.json").write_text(
            json.dumps({"url": source.url, "sha256": digests}, indent=2) + "\n"
        )
        os.rename(stage, folder)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error.strerror or error}", hint="choose another"
        ) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
