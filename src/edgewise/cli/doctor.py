"""`edgewise doctor`: show the software and hardware of this machine, and known incompatibilities."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shutil
import sys
from argparse import Namespace
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser

REQUIRED = ("torch", "torchrl", "tensordict", "torch_geometric", "pydantic", "PyYAML", "safetensors", "numpy")
TESTED = {"torch": "2.13", "torchrl": "0.14", "tensordict": "0.14", "torch_geometric": "2.8"}
MIN_DISK = 2 * 1024**3


@dataclass(frozen=True)
class Finding:
    """One check: its subject, its state and a text with the fix."""

    what: str
    state: Literal["ok", "note", "fault"]
    text: str


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.examples("edgewise doctor", "edgewise doctor --json")


def run(_: Namespace, console: Console) -> int:
    """Run all checks; the exit code is 2 if one of them finds a fault."""
    findings = [*_python(), *_packages(), *_devices(), *_threads(), *_compiler(), *_disk()]
    console.show(
        [asdict(finding) for finding in findings],
        table(["what", "state", "finding"], [[f.what, f.state, f.text] for f in findings]),
    )
    return 2 if any(finding.state == "fault" for finding in findings) else 0


def _python() -> list[Finding]:
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return [Finding("python", "ok" if sys.version_info >= (3, 11) else "fault", text)]


def _packages() -> list[Finding]:
    return [_package(name) for name in REQUIRED]


def _package(name: str) -> Finding:
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "fault", f"not installed; pip install {name}")
    tested = TESTED.get(name)
    if tested and not found.startswith(f"{tested}."):
        return Finding(name, "note", f"{found}; tested with {tested}")
    return Finding(name, "ok", found)


def _devices() -> list[Finding]:
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # a broken installation can raise anything
        return [Finding("torch import", "fault", f"{type(error).__name__}: {error}")]
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    kinds = ["cpu", *(f"cuda:{index} ({name})" for index, name in enumerate(names))]
    if torch.backends.mps.is_available():
        kinds.append("mps")
    return [Finding("devices", "ok", ", ".join(kinds)), *_incompatibilities(torch.__version__)]


def _incompatibilities(torch_version: str) -> list[Finding]:
    findings = []
    if importlib.util.find_spec("torchrl") and torch_version.startswith("2.13"):
        text = "TorchRL's C++ sum tree does not load on torch 2.13; prioritised sampling uses edgewise's own"
        findings.append(Finding("torchrl extension", "note", text))
    if importlib.util.find_spec("pyg_lib") is None:
        text = "not installed; radius and nearest-neighbour graphs use edgewise's implementation"
        findings.append(Finding("pyg_lib", "note", text))
    return findings


def _threads() -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    variable = os.environ.get("OMP_NUM_THREADS")
    text = f"{cores} cores; OMP_NUM_THREADS={variable or 'unset'}; runs use 1 thread unless `threads` is set"
    too_many = variable is not None and variable.isdigit() and int(variable) > cores
    return [Finding("threads", "note" if too_many else "ok", text)]


def _compiler() -> list[Finding]:
    compiler = os.environ.get("CXX", "g++")
    found = shutil.which(compiler) or shutil.which("clang++")
    if found:
        return [Finding("compiler", "ok", f"{found}; training.compile will work"), *_native()]
    return [Finding("compiler", "note", "no C++ compiler; training.compile falls back to eager"), *_native()]


def _native() -> list[Finding]:
    """Whether attention over edges runs in C here; compiles it if that has not been done."""
    try:
        attention = importlib.import_module("edgewise.models.native.attention")
        text, usable = attention.library(attention.NAME).text, attention.usable()
    except Exception as error:  # a broken installation can raise anything
        return [Finding("attention", "note", f"{type(error).__name__}: {error}")]
    if usable:
        return [Finding("attention", "ok", f"in C, {text}")]
    wrong = "" if attention.library(attention.NAME).functions is None else "computes something else: "
    return [Finding("attention", "note", f"in torch, which is slower: {wrong}{text}")]


def _disk() -> list[Finding]:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    writable = os.access(here, os.W_OK)
    text = f"{free / 1024**3:.1f} GiB free in {here}" + ("" if writable else ", but it cannot be written to")
    state: Literal["ok", "note"] = "ok" if writable and free >= MIN_DISK else "note"
    return [Finding("disk", state, text)]
