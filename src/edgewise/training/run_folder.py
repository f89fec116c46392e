"""A run is a folder: what is in it, made once, written by one process at a time. Never imports torch.

config.json      the resolved configuration
versions.json    what it ran with
metrics.csv      one row per logged batch; timing.csv beside it holds what a clock says
events.jsonl     start, resume, stage, checkpoint, best, stop
tensorboard/     the same metrics as TensorBoard events
checkpoints/     see `checkpoint`
evaluations/     one JSON per evaluation
replays/         recorded episodes
report.html      made from the above
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError, DataError
from edgewise.training import durable

PACKAGES = ("edgewise", "torch", "torchrl", "tensordict", "torch_geometric", "numpy", "safetensors")


class RunFolder:
    """The folder of one run.

    Args:
        path: an existing run folder; `create` makes a new one.

    Example:
        >>> folder = RunFolder.create(Path("runs/walk-0"), config.to_plain())
        >>> with folder.locked():
        ...     Trainer(config, parts, folder).run()
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not self.config_file.is_file():
            raise DataError(f"{self.path} is no run folder: it has no {self.config_file.name}")

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> RunFolder:
        """A new run folder with the resolved config, there whole or not at all.

        Raises:
            ConfigError: something is there already, or nothing can be made there.
        """
        target = Path(path)
        if target.is_symlink() or target.exists():
            raise ConfigError(
                f"{target} exists already, and a run is never overwritten",
                hint=f"continue it with `edgewise resume {target}`, or choose another folder",
            )
        stage = target.with_name(f".{target.name}.{os.getpid()}.stage")
        try:
            stage.mkdir(parents=True)
            for name in ("checkpoints", "evaluations", "replays"):
                (stage / name).mkdir()
            durable.write_whole(stage / "config.json", _json(dict(config)))
            durable.write_whole(stage / "versions.json", _json(versions()))
            durable.sync_folder(stage)
            os.rename(stage, target)
            durable.sync_folder(target.parent)
        except OSError as error:
            shutil.rmtree(stage, ignore_errors=True)
            raise ConfigError(f"cannot make the run folder {target}: {error.strerror or error}") from error
        return cls(target)

    @property
    def config_file(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.json"

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoints"

    @property
    def evaluations(self) -> Path:
        """Where evaluations are, one JSON each."""
        return self.path / "evaluations"

    @property
    def replays(self) -> Path:
        """Where recorded episodes are."""
        return self.path / "replays"

    def config(self) -> dict[str, Any]:
        """The resolved configuration as plain values."""
        return _read(self.config_file)

    def changed_versions(self) -> dict[str, tuple[str, str]]:
        """What has another version than when the run began: name → then, now."""
        then, now = _read(self.path / "versions.json"), versions()
        return {name: (str(then.get(name)), now[name]) for name in now if then.get(name) != now[name]}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer; the lock falls by itself when the process ends, however it ends.

        Raises:
            ConfigError: another process writes to this run; it is named.
        """
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError(f"cannot write to the run folder {self.path}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
                raise ConfigError(
                    f"{self.path} is being written to by {holder}",
                    hint="stop that process first, or wait until it is done",
                ) from error
            os.ftruncate(descriptor, 0)
            durable.write_fully(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            yield
        finally:
            os.close(descriptor)


def versions() -> dict[str, str]:
    """The versions of what a run's numbers depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no object")
    return value
