"""The accelerator that `make gpu` tests on; EDGEWISE_TEST_DEVICE=cpu tries these tests without one."""

import os

import pytest
import torch


def accelerator():
    """Return the name of the device to test on, None if there is none."""
    named = os.environ.get("EDGEWISE_TEST_DEVICE")
    if named is not None:
        return named
    return "cuda" if torch.cuda.is_available() else None


@pytest.fixture(scope="session")
def device():
    """A device other than the CPU; tests are skipped where there is none."""
    found = accelerator()
    if found is None:
        pytest.skip("this machine has no CUDA device, so nothing was tested on one")
    return torch.device(found)
