"""Runs that are started at the same moment take different folders."""

from edgewise.experiments import launch
from edgewise.experiments.load import load_config


def test_a_folder_that_somebody_else_takes_first_gives_way_to_the_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config("graphwalk-ppo")
    taken = launch.create_folder(config, None).path
    real, late = launch.next_folder, [taken]
    monkeypatch.setattr(launch, "next_folder", lambda name: late.pop() if late else real(name))
    assert launch.create_folder(config, None).path.name == "graphwalk-ppo-2"
    assert not late
