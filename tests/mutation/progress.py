"""Show how far a long loop is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on a terminal, and one line per step elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    began, count = time.monotonic(), 0
    with Progress(*columns, auto_refresh=False, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=total)

        def advance(text: str) -> None:
            nonlocal count
            count += 1
            bar.advance(task)
            bar.refresh()
            if bar.disable:
                print(f"{title} {count}/{total} {time.monotonic() - began:.0f}s {text}", flush=True)

        yield advance
