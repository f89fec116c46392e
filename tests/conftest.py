"""Profiles and threads for the whole suite; tests of systems that are not there are left out."""

import gc
import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings
from tests.simulated_device import SimulatedDevice
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

SYSTEMS = ("graphwalk", "hex", "hive", "marine", "multihop", "queueing", "reasoning", "swarm")
ABSENT = [name for name in SYSTEMS if find_spec(f"edgewise.systems.{name}") is None]
NAMED = re.compile(rf"(?<=[\"'.:/])({'|'.join(ABSENT)})\b|systems import .*\b({'|'.join(ABSENT)})\b")
IMPORTED = re.compile(r"^from ((?:tests|benchmarks)[\w.]*) import (\w+)", re.MULTILINE)


@cache
def _names_absent_system(file):
    """Return whether a file of tests, or one that it imports, names a system that is not there."""
    text = file.read_text(encoding="utf-8")
    modules = {name for package, name in IMPORTED.findall(text) for name in (package, f"{package}.{name}")}
    files = [Path(__file__).parents[1] / f"{name.replace('.', '/')}.py" for name in modules]
    return bool(NAMED.search(text)) or any(_names_absent_system(used) for used in files if used.is_file())


def pytest_ignore_collect(collection_path):
    """A file that names a system is a test of it too: without the system, it is left out."""
    return (collection_path.suffix == ".py" and _names_absent_system(collection_path)) if ABSENT else None


@pytest.fixture(autouse=True)
def _one_thread_and_seed():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _checked_actions(request, monkeypatch):
    """Every environment refuses illegal actions; tests that must not wait for a value are excepted."""
    module = sys.modules.get("edgewise.envs.base")
    if module is not None and not {"fake_device", "simulated_device"} & set(request.fixturenames):
        monkeypatch.setattr(module.GraphEnv, "check_actions", True)


class _AbsentBackend(_DummyBackendModule):
    """A device that exists by name alone."""

    def is_available(self):
        return False


@pytest.fixture(scope="session", autouse=True)
def _absent_device():
    """A device that this machine has not, known before the first backward, which counts devices once for all.

    Cuda where torch was built for it. A build without it cannot index fake cuda tensors and aborts in
    backward, so there a device under a name of our own stands in.
    """
    if torch.backends.cuda.is_built():
        return torch.device("cuda:0")
    _setup_privateuseone_for_python_backend("absent", backend_module=_AbsentBackend())
    return torch.device("absent:0")


def _replace_parameters(module, function, recurse=True):
    """What `Module._apply` does, without swapping tensors, which fake ones do not allow."""
    for child in module.children() if recurse else ():
        child._apply(function)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            module._parameters[name] = torch.nn.Parameter(function(parameter.data), parameter.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = function(buffer)
    return module


@pytest.fixture
def fake_device(_absent_device, monkeypatch):
    """A device other than the CPU, whose tensors have shapes but no values: FakeTensorMode is on in the test.

    Mixing devices raises, and so does anything that waits for a value: `.item()`, `bool(tensor)`, `nonzero`.
    """
    monkeypatch.setattr(torch.nn.Module, "_apply", _replace_parameters)
    monkeypatch.setattr(torch, "allclose", lambda *_, **__: True)  # TorchRL's bounded specs ask the host
    with FakeTensorMode():
        yield _absent_device


class _HostGenerator(torch.Generator):
    """A generator of the CPU, whatever device is asked for."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, "cpu")


@pytest.fixture
def simulated_device(_absent_device, monkeypatch):
    """A device other than the CPU with real values, see `tests.simulated_device`; it is on in the test."""
    monkeypatch.setattr(torch.nn.Module, "_apply", _replace_parameters)
    monkeypatch.setattr(torch, "Generator", _HostGenerator)
    with SimulatedDevice(_absent_device) as device:
        yield device
    for bank in gc.get_objects():  # the fake device has the same name, and must not find tensors of this one
        if type(bank).__name__ == "TopologyBank":
            bank._copies.clear()
