"""The folder of a run: created once, written by one process at a time. Never imports torch.

config.json      the resolved configuration
versions.json    format of the folder, versions of the packages, commit of edgewise where it is known
metrics.csv      one row per logged batch; times are in timing.csv
events.jsonl     start, resume, stage, checkpoint, best, stop
tensorboard/     the same metrics as TensorBoard events
checkpoints/     see `checkpoint`
evaluations/     one JSON per evaluation
replays/         recorded episodes
ablations.json   what the policy uses, from `edgewise eval --ablate`
digests.jsonl    SHA-256 of the files above, see `digests`
report.html      built from the above
"""

from __future__ import annotations

import errno
import json
import logging
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edgewise.config import files as run_files
from edgewise.config.errors import ConfigError, DataError
from edgewise.runs import digests, durable, lock
from edgewise.runs.format import FORMAT, check_run_format

PACKAGES = ("edgewise", "torch", "torchrl", "tensordict", "torch_geometric", "numpy", "safetensors")

log = logging.getLogger(__name__)


class RunFolder:
    """The folder of one run.

    Args:
        path: an existing run folder; use `create` for a new one.

    Raises:
        DataError: it is not a run folder.
        CheckpointError: another version of edgewise wrote it in a format that this one cannot read.

    Example:
        >>> folder = RunFolder.create(Path("runs/walk-0"), config.to_plain())
        >>> with folder.locked():
        ...     Trainer(config, parts, folder).run()
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not self.config_file.is_file():
            raise DataError(f"{self.path} is not a run folder: it has no {self.config_file.name}")
        check_run_format(self.path)

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> RunFolder:
        """Create a new run folder with the resolved config, completely or not at all.

        Raises:
            ConfigError: the path exists already, or cannot be created.
        """
        target = Path(path)
        if target.is_symlink() or target.exists():
            raise ConfigError(
                f"{target} exists already, and runs are never overwritten",
                hint=f"continue it with `edgewise resume {target}`, or choose another folder",
            )
        contents = {
            "config.json": dict(config),
            "versions.json": {"format": FORMAT, **versions(), **source_commit()},
        }
        files = {name: _json(content) for name, content in contents.items()}
        files[digests.FILE] = b"".join(digests.line(name, files[name]) for name in contents)
        try:
            durable.create_folder(target, folders=("checkpoints", "evaluations", "replays"), files=files)
        except OSError as error:
            raise ConfigError(f"cannot create the run folder {target}: {error.strerror or error}") from error
        return cls(target)

    @property
    def config_file(self) -> Path:
        """File of the resolved configuration."""
        return self.path / "config.json"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def evaluations(self) -> Path:
        """Folder of evaluations, one JSON file each."""
        return self.path / "evaluations"

    @property
    def replays(self) -> Path:
        """Folder of recorded episodes."""
        return self.path / "replays"

    def config(self) -> dict[str, Any]:
        """Read the resolved configuration as plain values."""
        return _read(self.config_file)

    def changed_versions(self) -> dict[str, tuple[str, str]]:
        """Return packages whose version changed since the run began: name → then, now."""
        then, now = _read(self.path / "versions.json"), versions()
        return {name: (str(then.get(name)), now[name]) for name in now if then.get(name) != now[name]}

    def warn_of_damage(self, *names: str) -> None:
        """Log a warning for each file that is not as it was written: for these, or for all of the folder."""
        for name, fault in digests.damaged_files(self.path, *names):
            log.warning("%s %s", self.path / name, fault)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process; the lock is released when the process ends, however it ends.

        Raises:
            ConfigError: another process has the lock; the message names it.
        """
        try:
            with lock.locked(self.path):
                self._prepare()
                yield
        except OSError as error:
            if error.filename != str(self.path / lock.FILE):
                raise
            where = f"{error.filename}: " if error.errno in (errno.ELOOP, errno.EMLINK) else ""
            raise ConfigError(
                f"cannot write to the run folder {self.path}: {where}{error.strerror}"
            ) from error

    def _prepare(self) -> None:
        """Refuse symbolic links, which would let a run write elsewhere; create folders that were removed.

        Raises:
            ConfigError: the folder contains a link, or cannot be written to.
        """
        for link in run_files.links_in(self.path):
            raise ConfigError(
                f"{link} is a symbolic link, and a run folder must not contain any",
                hint="put the file or folder itself in its place",
            )
        try:
            for folder in (self.checkpoints, self.evaluations, self.replays):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot write to {self.path}: {error.strerror}: {error.filename}") from error


def versions() -> dict[str, str]:
    """Return the versions of everything that the numbers of a run depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def source_commit() -> dict[str, str]:
    """Return the commit of edgewise that is checked out, as `commit`; empty outside its repository.

    It is read from the files of git: a run starts no other program.
    """
    git = Path(__file__).resolve().parents[3] / ".git"
    try:
        if git.is_file():  # a work tree, which has its own HEAD and shares the rest
            git = Path(run_files.read_text(git).removeprefix("gitdir:").strip())
        shared = git / run_files.read_text(git / "commondir").strip() if (git / "commondir").exists() else git
        head = run_files.read_text(git / "HEAD").strip()
        name = head.removeprefix("ref: ")
        if name != head:
            head = _commit_of(shared, name)
    except (OSError, ValueError):
        return {}
    return {"commit": head} if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head) else {}


def _commit_of(git: Path, name: str) -> str:
    """Return the commit that a branch points to, which is in a file of its own or in a list."""
    if (git / name).is_file():
        return run_files.read_text(git / name).strip()
    lines = run_files.read_text(git / "packed-refs").splitlines()
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _read(path: Path) -> dict[str, Any]:
    try:
        value = run_files.read_json(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} is not a JSON object")
    return value
