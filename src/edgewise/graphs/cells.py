"""A spatial index in torch: points sorted by square cells, for all worlds at once and on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.graphs.neighbours import (
    BLOCK,
    Cloud,
    NearestFound,
    inner_radius,
    links_between,
    nearest_of_all,
    outer_radius,
)

AXES = 3
"""Coordinates that cells divide; more would give 3^P cells around a point."""
CELLS = 2**15
"""Largest number of cells along a coordinate; wider clouds have wider cells."""
ROUNDING = 1e-9
"""Share by which cells are wider than the distance that they must cover, for errors of rounding."""
FULL = 6.0
"""Mean number of senders per neighbour searched in the cells around a point, above which cells are halved."""


class Cells:
    """Senders sorted by the cell that they lie in.

    Args:
        cloud: finite points in float64.
        width: `[W]`, distance up to which `around` must find all senders, for each world.

    Attributes:
        width: `[W]`, distance up to which it finds them, at least that.
    """

    def __init__(self, cloud: Cloud, width: Tensor) -> None:
        position, sends = cloud.position[..., :AXES], cloud.sends
        worlds, nodes, axes = position.shape
        extent = cloud.extent[:, :AXES].amax(-1) if axes else torch.zeros_like(width)
        self.width = width.maximum(extent / CELLS).clamp(min=torch.finfo(torch.float64).tiny)
        side = self.width * (1 + ROUNDING)
        low = position.masked_fill(~sends.unsqueeze(-1), torch.inf).amin(1, keepdim=True)
        low = low.masked_fill(low == torch.inf, 0.0)
        place = ((position - low) / side.view(-1, 1, 1)).floor().clamp(-2, CELLS + 2).long() + 3
        self.sides = CELLS + 8
        key = torch.arange(worlds, device=position.device).unsqueeze(-1).expand(worlds, nodes)
        for axis in range(axes):
            key = key * self.sides + place[..., axis]
        self.key = key.flatten()
        found = self.key.masked_fill(~sends.flatten(), torch.iinfo(torch.int64).max)
        self.sorted, self.order = found.sort(stable=True)
        offsets = torch.zeros(1, dtype=torch.int64, device=position.device)
        for axis in range(axes - 1):
            step = self.sides ** (axes - 1 - axis)
            near = torch.tensor((-step, 0, step), device=position.device)
            offsets = (offsets.unsqueeze(-1) + near).flatten()
        self.offsets, self.reach = offsets, int(axes > 0)

    def around(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return ranges in `order` of the senders in the cells around points `target [R]`.

        Returns:
            First and number, both `[R, G]` int64, for each of the G rows of cells. All senders closer than
            the width are in one of them.
        """
        middle = self.key[target].unsqueeze(-1) + self.offsets
        first = torch.searchsorted(self.sorted, middle - self.reach)
        return first, torch.searchsorted(self.sorted, middle + self.reach, right=True) - first


def within(
    cloud: Cloud, radius: float, *, capacity: int | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Find all links shorter than a radius.

    Args:
        cloud: the points.
        radius: positive.
        capacity: number of candidate pairs to allocate, so that nothing depends on data; None to count them.

    Returns:
        Sources, targets and which of them are links, all `[L]`; and whether the capacity was too small, 0-d.
    """
    sound = cloud.finite()
    dtype, device = cloud.position.dtype, cloud.position.device
    width = torch.full(
        (len(cloud.position),), outer_radius(radius, dtype), dtype=torch.float64, device=device
    )
    cells = Cells(sound, width)
    target = torch.arange(sound.sends.numel(), device=device)
    if capacity is None:
        target = target[sound.receives.flatten()]
    first, number = cells.around(target)
    if capacity is not None:
        number = number.masked_fill(~sound.receives.reshape(-1, 1), 0)
    which, slot, exists, too_small = expand(number.flatten(), capacity)
    source = cells.order[(first.flatten()[which] + slot).clamp(max=len(cells.order) - 1)]
    target = target[which // first.shape[1]]
    return source, target, links_between(cloud, source, target, radius=radius) & exists, too_small


def expand(number: Tensor, capacity: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return one row per member of groups of the given sizes.

    Args:
        number: `[Q]`, size of each group.
        capacity: rows L to allocate; None for as many as there are members.

    Returns:
        The group and the place in it of each row, `[L]` int64; which rows are members, `[L]` bool; and
        whether some members have no row, 0-d bool.
    """
    end = number.cumsum(0)
    total = end[-1] if len(end) else number.sum()
    if capacity is None:
        count = int(total)
        group = torch.repeat_interleave(number, output_size=count)
        row = torch.arange(count, device=number.device)
        exists = torch.ones_like(row, dtype=torch.bool)
    else:
        row = torch.arange(capacity, device=number.device)
        group = torch.searchsorted(end, row, right=True).clamp(max=len(end) - 1)
        exists = row < total
    return group, row - (end - number)[group], exists, total > len(row)


def nearest(cloud: Cloud, k: int) -> NearestFound:
    """Find the k nearest senders of every receiver; the host waits for the device several times.

    Points whose neighbours are not certain, because fewer than k senders are closer than the width of a cell,
    are searched again in cells twice as wide, and compared with all senders if few are left.
    """
    sound, nodes = cloud.finite(), cloud.sends.shape[1]
    found = NearestFound.nothing(cloud, k)
    left = sound.receives.flatten().nonzero().squeeze(-1)
    cells, extent = _fitting_cells(sound, left, k), sound.extent.amax(-1)
    while len(left) * nodes > BLOCK // 16:
        first, number = cells.around(left)
        total = number.sum(1)
        holds_all = bool((cells.width >= extent)[left // nodes].all())
        if holds_all or int(total.sum()) > len(left) * nodes // 4:
            break
        safe = inner_radius(cells.width[left // nodes], cloud.position.dtype)
        is_final = torch.zeros_like(left, dtype=torch.bool)
        for rows in _blocks(total):
            candidates = _candidates(cells, first[rows], number[rows])
            is_final[rows] = found.decide(cloud, left[rows], candidates, safe[rows])
        left = left[~is_final]
        cells = Cells(sound, 2 * cells.width)
    nearest_of_all(Cloud(cloud.position, sound.sends, sound.receives), found, left)
    return found


def _fitting_cells(cloud: Cloud, target: Tensor, k: int) -> Cells:
    """Return cells with about half of k senders each, and smaller ones where the cloud is uneven."""
    count = cloud.sends.sum(-1).clamp(min=1)
    sides, _ = cloud.extent[:, :AXES].sort(-1, descending=True)
    share = 0.5 * (k + 1) / count.unsqueeze(-1)
    power = torch.arange(1, sides.shape[-1] + 1, device=sides.device)
    cells = Cells(cloud, (sides.cumprod(-1) * share).pow(1 / power).amax(-1))
    world = target // cloud.sends.shape[1]
    receivers = torch.bincount(world, minlength=len(count)).clamp(min=1)
    for _ in range(15):
        total = torch.zeros_like(count).index_add(0, world, cells.around(target)[1].sum(1))
        is_full = total > FULL * (k + 1) * receivers
        narrower = torch.where(is_full, cells.width / 2, cells.width)
        if not bool(is_full.any()):
            break
        after = Cells(cloud, narrower)
        if bool((after.width == cells.width).all()):
            break
        cells = after
    return cells


def _blocks(total: Tensor) -> list[Tensor]:
    """Split rows with `total [R]` candidates into groups of similar totals and limited memory."""
    widths, order = total.sort(descending=True)
    blocks, start = [], 0
    while start < len(order):
        stop = start + max(BLOCK // max(int(widths[start]), 1), 1)
        blocks.append(order[start:stop])
        start = stop
    return blocks


def _candidates(cells: Cells, first: Tensor, number: Tensor) -> Tensor:
    """Return the senders in ranges `[R, G]` of the order as rows `[R, C]`, -1 for none."""
    ends = number.cumsum(1)
    column = torch.arange(int(ends[:, -1].max()), device=first.device)
    place = torch.full((len(first), len(column)), -1, device=first.device)
    for group in reversed(range(first.shape[1])):
        begin = first[:, group] - (ends[:, group] - number[:, group])
        place = torch.where(column < ends[:, group : group + 1], begin.unsqueeze(-1) + column, place)
    if not len(cells.order):
        return place
    return torch.where(place < 0, -1, cells.order[place.clamp(min=0)])
