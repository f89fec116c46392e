"""Callbacks of one's own: `edgewise train tsp.py --logger callbacks.py:TextLogger`.

In Python: `ew.train("tsp.py", callbacks=[TextLogger(), StopBelow(4.2)])`.
"""

import edgewise as ew


class TextLogger(ew.Callback):
    """A logger: writes the mean tour of each evaluation to tours.txt in the run folder."""

    def on_start(self, run):
        """Open the file."""
        self.path = run.path / "tours.txt"

    def on_evaluation(self, frames, evaluation):
        """Add a line."""
        tour = evaluation.summary()["tour"].estimate
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{frames} {tour:.4f}\n")


class StopBelow(ew.Callback):
    """Ends the run when the mean tour of an evaluation is short enough.

    Args:
        length: of the mean tour at which the run ends.
    """

    def __init__(self, length):
        self.length = length

    def on_evaluation(self, frames, evaluation):
        """Stop if the goal is reached."""
        tour = evaluation.summary()["tour"].estimate
        if tour < self.length:
            raise ew.StopTraining(f"the mean tour is {tour:.3f} after {frames:,} frames")
