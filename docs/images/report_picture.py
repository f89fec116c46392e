"""Takes the picture of a report for the first page: its episode in the light, its charts in the dark.

    edgewise train beacons.py --total-frames 1e5 --seed 1     # the file of the README
    python docs/images/report_picture.py runs/beacons-1 2

Needs Chromium. The number is the frame of the episode to show.
"""

import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH, HEIGHT = 1000, 1100
PAGE = """<!doctype html><title>report</title>
<style>
body {{ margin: 0; display: flex }}
iframe {{ border: 0; width: {width}px; height: {height}px }}
</style>
<iframe src="{report}#frame={frame}" style="color-scheme: light"></iframe>
<iframe src="{report}#learning" style="color-scheme: dark"></iframe>
"""


def take(run: Path, target: Path, *, frame: int) -> None:
    """Write the picture of a run's report."""
    report = html.escape((run / "report.html").resolve(strict=True).as_uri())
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("Chromium is needed")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "picture.html"
        page.write_text(PAGE.format(report=report, frame=frame, width=WIDTH, height=HEIGHT))
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        switches += ["--allow-file-access-from-files"]
        switches += [f"--user-data-dir={folder}/profile", "--virtual-time-budget=3000"]
        switches += [f"--window-size={2 * WIDTH},{HEIGHT}", f"--screenshot={target.resolve()}"]
        subprocess.run([chromium, *switches, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    take(Path(sys.argv[1]), Path(__file__).with_name("report.png"), frame=chosen)
