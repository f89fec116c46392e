"""Random views of robots, for every network that reads them."""

import torch
from tensordict import TensorDict


def random_view(*lead, slots=5, seed=0, share=0.6):
    """What robots see, in about the units of the sea: metres, metres per second, newtons."""
    draw = torch.Generator().manual_seed(seed)
    own = torch.randn(*lead, 7, generator=draw) * torch.tensor([20.0, 20.0, 2.0, 2.0, 0.5, 500.0, 500.0])
    objects = torch.randn(*lead, slots, 5, generator=draw) * torch.tensor([10.0, 10.0, 2.0, 2.0, 0.2])
    objects[..., 4] += 1.5
    mask = torch.rand(*lead, slots, generator=draw) < share
    return TensorDict({"self": own, "objects": objects, "mask": mask}, lead)
