"""Draw replays without a browser: as SVG, PNG, GIF or MP4."""
