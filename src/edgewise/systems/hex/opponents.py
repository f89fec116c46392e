"""Opponents from other programs: OpenSpiel's tree search, and networks in ONNX files."""

from __future__ import annotations

from edgewise.experiments.opponents import FILE, Opponent
from edgewise.systems.hex import onnx_player, open_spiel

OPPONENTS = {
    "open_spiel": Opponent(open_spiel.open_spiel_opponent, open_spiel.USAGE),
    FILE: Opponent(onnx_player.onnx_player, onnx_player.USAGE),
}
