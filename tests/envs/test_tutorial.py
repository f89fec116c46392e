"""The tutorial's code runs as it stands, is as short as it says, and learns."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "your-own-environment.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def played():
    """The names that the page's code leaves behind."""
    names = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_environment_takes_forty_lines():
    code = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert code.index("class BeaconConfig(Config):") == 7
    assert len(code) - 7 <= 40


def test_the_trained_policy_beats_chance_on_sizes_seen_and_unseen(played):
    for sites in (12, 30):
        worlds = played["BeaconEnv"](played["BeaconConfig"](num_sites=sites, max_steps=sites), num_envs=200)
        policies = {"trained": played["algorithm"].policy, "chance": worlds.rand_action}
        returns = {
            name: played["evaluate"](worlds, policy, episodes=200, seed=2).returns.mean()
            for name, policy in policies.items()
        }
        assert returns["trained"] > 0.7 * returns["chance"], "more than 0.7 of the beacons that chance lights"


def test_a_beacon_lights_what_is_within_reach(played):
    torch = played["torch"]
    env = played["BeaconEnv"](played["BeaconConfig"](num_sites=3, reach=0.5), num_envs=1, seed=0)
    root = env.reset()
    root["state", "place"] = torch.tensor([[[0.0, 0.0], [0.4, 0.0], [0.8, 0.0]]])
    ends = {}
    for site in range(3):
        following = env.step(root.copy().set("action", torch.tensor([site])))["next"]
        ends[site] = following["terminated"].item()
        assert following["reward"].item() == -1
    assert ends == {0: False, 1: True, 2: False}
