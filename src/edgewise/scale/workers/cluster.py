"""Join a Ray cluster, or start one on this machine that nobody else can reach."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
from collections.abc import Iterator
from types import ModuleType

from edgewise.config.errors import ConfigError, ProcessLost
from edgewise.config.run import RayConfig

QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
"""Environment variables with which Ray reports to nobody."""
STARTS = 5
"""How often Ray is started: it gives up after 30 s, which a busy machine may need."""
PATIENCE = 10.0
"""Seconds for a cluster to accept a connection."""


def connect(settings: RayConfig, *, workers: int) -> tuple[ModuleType, bool]:
    """Connect this process to the cluster of the settings.

    Returns:
        The module `ray`, and whether the connection was made here and is to be closed here.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers.
        ProcessLost: Ray does not start on this machine.
    """
    if settings.address is None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "workers: they need Ray, which is not installed", hint="pip install edgewise[ray]"
        ) from error
    if ray.is_initialized():
        return ray, False
    (_start if settings.address is None else _join)(ray, settings, workers)
    _silence()
    return ray, True


def _start(ray: ModuleType, settings: RayConfig, workers: int) -> None:
    """Start Ray on this machine, with room for all workers, until the connection is closed."""
    for attempt in range(1, STARTS + 1):
        try:
            with on_loopback():
                ray.init(
                    address="local",
                    num_cpus=math.ceil(workers * settings.cpus),
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            return
        except Exception as error:  # Ray raises errors of any kind here
            ray.shutdown()
            if attempt == STARTS:
                raise ProcessLost(
                    f"Ray could not be started on this machine: {_first_line(error)}",
                    hint="try again, or join a cluster with ray.address",
                ) from error


@contextlib.contextmanager
def on_loopback() -> Iterator[None]:
    """Let the nodes of Ray that start in the body listen on the loopback interface only.

    Ray does so where it takes the machine for one that cannot have a cluster. It decides that when it is
    imported, which TorchRL does, so an environment variable would come too late.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _join(ray: ModuleType, settings: RayConfig, workers: int) -> None:  # noqa: ARG001 - as in _start
    assert settings.address is not None
    try:
        _check_reachable(settings.address)
        # Otherwise Ray would replace this address by that of another interface, on which nothing listens.
        is_local = settings.address.startswith(("127.", "localhost:"))
        with on_loopback() if is_local else contextlib.nullcontext():
            ray.init(address=settings.address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises errors of any kind here
        where = "on this machine" if settings.address == "auto" else f"at {settings.address}"
        raise ConfigError(
            f"ray.address: no cluster answers {where}: {_first_line(error)}",
            hint="start one with `ray start --head`, or leave ray.address out to start one for this run",
        ) from error


def _check_reachable(address: str) -> None:
    """Raise OSError within seconds if nothing listens at an address, for which Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _silence() -> None:
    """Keep Ray from writing to stdout, where results go; `RayWorkers` logs what happens to workers."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private import worker

        worker.print_to_stdstream = _nothing


def _nothing(*_: object, **__: object) -> None:
    """Write nothing."""
