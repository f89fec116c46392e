"""Write a replay to a picture or an animation, by the ending of the file."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgewise.config.errors import ConfigError
from edgewise.report.pictures.episode import Episode
from edgewise.report.pictures.palette import Theme, palette
from edgewise.report.pictures.picture import Layout, draw_picture
from edgewise.report.pictures.svg_canvas import SvgCanvas
from edgewise.runs import digests

STILL, MOVING = (".svg", ".png"), (".gif", ".mp4")
ENDINGS = (*STILL, *MOVING)
LAST = 1.5
"""Seconds for which an animation shows its last frame."""
COLOURS, SAMPLED = 128, 6
"""Colours of a GIF, and frames that they are chosen from."""
Progress = Callable[[int, int], None]


class Picture(str):
    """An SVG picture, which notebooks show."""

    def _repr_svg_(self) -> str:
        return str(self)


def write(
    replay: Mapping[str, Any],
    target: Path,
    *,
    frame: int | None = None,
    fps: float | None = None,
    width: int = 640,
    height: int | None = None,
    theme: Theme = "light",
    bare: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Draw a replay and write it.

    Args:
        replay: as `edgewise.evaluation.replays.files.load` returns it.
        target: ends with .svg or .png, for one moment, or with .gif or .mp4, for the whole episode.
        frame: the moment to draw, counted from 0, or from the end if negative; by default the last one.
        fps: frames of the replay per second; as in the replay if not given.
        width: of the picture, in pixels.
        height: of the picture, in pixels; an even number for a video. As tall as it needs if not given.
        theme: light or dark.
        bare: whether to leave out title, time, curves and legend.
        progress: called with the number of frames drawn and their number.

    Raises:
        ConfigError: the ending of the file is another, there is no such frame, or a program is missing.
    """
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(f"{target}: expected a file that ends with {', '.join(ENDINGS)}")
    episode = Episode(replay)
    if frame is not None and ending in MOVING:
        raise ConfigError(
            f"frame: {target.name} shows the whole episode",
            hint="leave it out, or write a .png or .svg file",
        )
    if frame is not None and not -len(episode) <= frame < len(episode):
        raise ConfigError(
            f"frame: got {frame}, but the episode has {len(episode)} frames, 0 to {len(episode) - 1}"
        )
    style = _Style(width, theme, bare, height)
    at = float(range(len(episode))[-1 if frame is None else frame])
    if ending == ".svg":
        content = _svg(episode, at, style).encode()
    elif ending == ".png":
        content = _saved(_image(episode, at, style), "PNG", optimize=True)
    else:
        speed = fps or episode.fps
        images = _images(episode, style, progress)
        content = _gif(images, speed) if ending == ".gif" else _mp4(images, speed)
    target.parent.mkdir(parents=True, exist_ok=True)
    digests.replace(target, content)
    return target


def svg(
    replay: Mapping[str, Any],
    *,
    frame: int = -1,
    width: int = 640,
    theme: Theme = "light",
    bare: bool = False,
) -> str:
    """Return one moment of a replay as SVG."""
    episode = Episode(replay)
    return _svg(episode, float(range(len(episode))[frame]), _Style(width, theme, bare))


def array(replay: Mapping[str, Any], *, frame: int = -1, width: int = 640, height: int | None = None) -> Any:
    """Return one moment of a replay as pixels `[height, width, 3]`, a NumPy array of uint8."""
    import numpy as np

    episode, style = Episode(replay), _Style(width, "light", bare=False, height=height)
    return np.asarray(_image(episode, float(range(len(episode))[frame]), style))


class _Style(NamedTuple):
    """How a picture looks, see `write`."""

    width: int
    theme: Theme
    bare: bool
    height: int | None = None


def _svg(episode: Episode, time: float, style: _Style) -> str:
    layout = Layout.of(episode, width=style.width, height=style.height, bare=style.bare)
    colours = palette(style.theme)
    title = str(episode.replay["title"])
    canvas = SvgCanvas(layout.width, layout.height, background=colours.tones["paper"], title=title)
    draw_picture(canvas, episode, layout, time=time, palette=colours)
    return canvas.content()


def _image(episode: Episode, time: float, style: _Style) -> Any:
    """Return a moment as a `PIL.Image.Image`."""
    from edgewise.report.pictures.raster_canvas import RasterCanvas

    layout, colours = (
        Layout.of(episode, width=style.width, height=style.height, bare=style.bare),
        palette(style.theme),
    )
    canvas = RasterCanvas(layout.width, layout.height, background=colours.tones["paper"])
    draw_picture(canvas, episode, layout, time=time, palette=colours)
    return canvas.content()


def _images(episode: Episode, style: _Style, progress: Progress | None) -> Iterator[Any]:
    for index in range(len(episode)):
        yield _image(episode, float(index), style)
        if progress is not None:
            progress(index + 1, len(episode))


def _saved(image: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return buffer.getvalue()


def _gif(images: Iterator[Any], fps: float) -> bytes:
    """Return an endless GIF; all frames share the colours of some of them, so that nothing flickers."""
    every = list(images)
    chosen = every[:: max(1, len(every) // SAMPLED)]
    width, height = every[0].size
    sheet = every[0].resize((width, height * len(chosen)))
    for place, image in enumerate(chosen):
        sheet.paste(image, (0, place * height))
    shared = sheet.quantize(COLOURS)
    frames = [image.quantize(palette=shared, dither=0) for image in every]
    durations = [round(1000 / fps)] * (len(frames) - 1) + [round(1000 * LAST)]
    return _saved(
        frames[0], "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=False
    )


def _mp4(images: Iterator[Any], fps: float) -> bytes:
    """Return a video (H.264), encoded by the program ffmpeg."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise ConfigError(
            "writing .mp4 needs the program ffmpeg, which is not installed",
            hint="install ffmpeg with the package manager of your system, or write a .gif file",
        )
    first = next(images)
    size = f"{first.width}x{first.height}"
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", f"{fps:g}", "-i", "-"]
    coding = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "frag_keyframe+empty_moov", "-f", "mp4"]
    process = subprocess.Popen(
        [program, "-loglevel", "error", *source, *coding, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    raw = b"".join(image.tobytes() for image in (first, *images))
    content, errors = process.communicate(raw)
    if process.returncode:
        reason = errors.decode(errors="replace").strip().splitlines()
        raise ConfigError(f"ffmpeg failed: {reason[-1] if reason else f'code {process.returncode}'}")
    return content
