"""Searches without learning, for many graphs and many starts at once: steepest ascent and tabu search."""

import time

import torch


class Cuts:
    """Divisions of the nodes of G graphs, R for each, with the change of the cut by each flip.

    Args:
        weight: symmetric matrices of weights, `[G, N, N]`.
        side: +1 or -1 for each node, `[G, R, N]`.

    Attributes:
        gain: by how much the cut grows if a node is flipped, `[G * R, N]`.
        cut: `[G * R]`.
    """

    def __init__(self, weight, side):
        graphs, starts, self.nodes = side.shape
        self.rows = torch.arange(graphs * starts)
        self.graph = self.rows // starts
        self.weight = weight.reshape(-1, self.nodes)
        self.side = side.reshape(-1, self.nodes).clone()
        self.gain = (side * (side @ weight)).reshape(-1, self.nodes)
        self.cut = (weight.sum((-1, -2)).repeat_interleave(starts) - self.gain.sum(-1)) / 4

    def flip(self, node, moves=None):
        """Flip one `node [G * R]` of each division, or only of those where `moves [G * R]` bool."""
        own, own_side = self.gain[self.rows, node], self.side[self.rows, node]
        share = 1.0 if moves is None else moves.to(own.dtype)
        self.cut += share * own
        row = self.weight[self.graph * self.nodes + node]
        self.gain.addcmul_(self.side, row.mul_((share * own_side).unsqueeze(-1)), value=-2.0)
        self.gain[self.rows, node] = own - 2.0 * share * own
        self.side[self.rows, node] = own_side - 2.0 * share * own_side


def random_sides(graphs, starts, nodes, generator):
    """Sample divisions `[graphs, starts, nodes]`."""
    return 1.0 - 2.0 * torch.randint(0, 2, (graphs, starts, nodes), generator=generator)


def ascend(weight, side):
    """Make the best flip of each division `side [G, R, N]` until none is better; return the cuts `[G, R]`."""
    cuts = Cuts(weight, side)
    while True:
        best, node = cuts.gain.max(-1)
        if not (best > 0).any():
            return cuts.cut.view(side.shape[:2])
        cuts.flip(node, best > 0)


def tabu_search(weight, side, generator, *, steps=None, seconds=None, tenure=None, spread=10):
    """Improve divisions by tabu search; return the best cuts `[G, R]`, and how many steps were made.

    Each step makes the best flip of a node that was not flipped for a random time of `tenure` to `tenure +
    spread` steps, or of any node if that gives a new best cut. Of equal flips a random one is made.

    Args:
        weight: symmetric matrices of whole weights, `[G, N, N]`.
        side: where to begin, `[G, R, N]`.
        generator: of ties and tenures.
        steps: how many to make.
        seconds: CPU time after which to stop, instead of a number of steps.
        tenure: a tenth of the nodes if not given.
        spread: see above.
    """
    begin = time.process_time()
    cuts, nodes = Cuts(weight, side), side.shape[-1]
    tenure = nodes // 10 if tenure is None else tenure
    best = cuts.cut.clone()
    free_from = torch.zeros_like(cuts.gain, dtype=torch.int32)
    ties = 0.5 * torch.rand(64, *cuts.gain.shape[1:], generator=generator)
    shift = torch.randint(0, 64, (1 << 12,), generator=generator).tolist()
    wait = tenure + 1 + torch.randint(0, spread + 1, (256, len(best)), generator=generator).int()
    score, count = torch.empty_like(cuts.gain), 0
    while count < steps if seconds is None else time.process_time() - begin < seconds:
        torch.add(cuts.gain, ties[shift[count % len(shift)]], out=score)
        is_barred = (free_from > count).logical_and_(cuts.gain <= (best - cuts.cut).unsqueeze(-1))
        node = score.masked_fill_(is_barred, -1e9).argmax(-1)
        cuts.flip(node)
        torch.maximum(best, cuts.cut, out=best)
        free_from[cuts.rows, node] = count + wait[count % 256]
        count += 1
    return best.view(side.shape[:2]), count
