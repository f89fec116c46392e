"""A column of a progress display that gives way where the terminal is narrow. Never imports torch."""

from __future__ import annotations

from rich.progress import ProgressColumn, Task
from rich.text import Text


class CroppedColumn(ProgressColumn):
    """Text that is cut off with an ellipsis, so that bar, count and time left keep their place.

    Args:
        template: with the fields of a task, as in rich's `TextColumn`.
        longest: letters that are shown at most.
    """

    def __init__(self, template: str, *, longest: int | None = None) -> None:
        super().__init__()
        self._template, self._longest = template, longest

    def render(self, task: Task) -> Text:
        """Return the text of a task; rich shortens columns that may wrap, and this text does not."""
        text = self._template.format(task=task)
        if self._longest is not None and len(text) > self._longest:
            text = f"{text[: self._longest - 1]}…"
        return Text(text, no_wrap=True, overflow="ellipsis")
