"""What a run shows in a notebook: plots of its measures, and pictures of episodes."""

import pytest

import edgewise as ew
from edgewise.config.errors import ConfigError
from edgewise.runs.zoo import run_path


@pytest.fixture
def run():
    return ew.open_run(run_path("zoo:graphwalk-ppo"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    settings = {"total_frames": 600, "num_envs": 8, "rollout_length": 8, "hidden": 8, "layers": 1}
    return ew.train("graphwalk-ppo", folder=tmp_path_factory.mktemp("runs") / "run", **settings)


def test_a_picture_is_shown_or_written(run, tmp_path):
    picture = run.render(frame=0)
    assert picture._repr_svg_().startswith("<svg")
    assert run.render(theme="dark") != run.render()
    pytest.importorskip("PIL")
    assert run.render(tmp_path / "walk.gif") == tmp_path / "walk.gif"
    assert (tmp_path / "walk.gif").stat().st_size > 1000


def test_measures_are_plotted(trained):
    pytest.importorskip("matplotlib")
    figure = trained.plot()
    (axes,) = figure.axes
    (line,) = axes.lines
    frames, values = trained.metrics["frames"], trained.metrics["evaluation/return"]
    seen = values == values
    assert list(line.get_xdata()) == list(frames[seen])
    assert list(line.get_ydata()) == list(values[seen])
    assert figure._repr_png_().startswith(b"\x89PNG")
    several = trained.plot("learn/entropy", "learn/kl", "learn/value_loss", "frames", log=True)
    assert [axes.get_title() for axes in several.axes][:2] == ["learn/entropy", "learn/kl"]
    assert {axes.get_yscale() for axes in several.axes} == {"log"}
    with pytest.raises(ConfigError, match="learn/entropi is not measured"):
        trained.plot("learn/entropi")
