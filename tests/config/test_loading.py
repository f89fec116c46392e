"""Layers win over each other in order, and every problem is named with its place, all at once."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from edgewise.config.documents import read
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer
from edgewise.config.loading import resolve
from edgewise.config.model import AppliesIf, Config
from edgewise.config.run import RunConfig, Stage, TrainingConfig, Until
from edgewise.config.schedules import Cosine, Linear
from edgewise.config.schema import leaves, unused_settings
from edgewise.config.settings import from_flags, from_keywords
from edgewise.experiments.recipes import recipe
from edgewise.plugins import recipes


class Problem(Config):
    """An environment's settings."""

    size: int | tuple[int, int] = 3
    """How large it is."""
    noise: float = Field(0.1, ge=0)


class Network(Config):
    """A model's settings."""

    kind: str = "wide"
    hidden: int = 8
    norm: Literal["none", "layer"] = "layer"


class Learner(Config):
    """An algorithm's settings."""

    fixed = ("gamma",)

    gamma: float = 0.9
    learning_rate: float = Field(1e-3, gt=0)
    clip: float | None = None
    epochs: int = 2


Run = RunConfig[Problem, Network, Learner]
BASE = Run(
    recipe="x",
    name="x",
    env=Problem(),
    model=Network(hidden=5),
    algorithm=Learner(),
    training=TrainingConfig(schedules={"clip": Linear(start=0.3)}),
)


def base():
    return Layer("recipe x", BASE.to_plain())


def faults(*layers):
    with pytest.raises(ConfigError) as caught:
        resolve(Run, [base(), *layers])
    assert caught.value.exit_code == 2
    return {".".join(map(str, problem.path)): problem for problem in caught.value.problems}


def file(folder, text, name="mine.yaml"):
    path = folder / name
    path.write_text(text)
    return read(path)


def test_recipe_alone():
    assert resolve(Run, [base()]) == BASE


def test_a_file_wins_over_the_recipe_and_a_flag_over_the_file(tmp_path):
    layer = file(tmp_path, "seed: 1\nthreads: 2\nenv: {size: 5}\nalgorithm: {learning_rate: 1e-4}\n")
    config = resolve(Run, [base(), layer, from_flags(Run, [("--threads", "3"), ("--env.size", "7,9")])])
    assert (config.seed, config.threads, config.env.size) == (1, 3, (7, 9))
    assert config.algorithm.learning_rate == 1e-4
    assert config.model.hidden == 5


@given(
    st.lists(st.sampled_from(["seed", "threads", "total_frames", "noise"]), unique=True),
    st.integers(1, 1024),
)
def test_keywords_and_flags_mean_the_same(names, value):
    by_flag = from_flags(Run, [(f"--{name.replace('_', '-')}", str(value)) for name in names])
    by_keyword = from_keywords(Run, dict.fromkeys(names, value))
    assert resolve(Run, [base(), by_flag]) == resolve(Run, [base(), by_keyword])


def test_whole_numbers_may_be_written_with_an_exponent():
    config = resolve(Run, [base(), from_flags(Run, [("--training.total-frames", "1e6")])])
    assert config.training.total_frames == 1_000_000
    assert type(config.training.total_frames) is int
    assert "training.rollout_length" in faults(from_flags(Run, [("--training.rollout_length", "1e-3")]))


def test_text_is_never_a_number_and_a_number_never_a_truth_value(tmp_path):
    found = faults(file(tmp_path, 'seed: "3"\nthreads: true\ntraining: {compile: 1}\nname: 7\n'))
    assert set(found) == {"seed", "threads", "training.compile", "name"}


def test_a_flag_of_a_text_field_is_text():
    assert resolve(Run, [base(), from_flags(Run, [("--name", "007")])]).name == "007"


def test_a_flag_that_stands_alone_is_true():
    assert resolve(Run, [base(), from_flags(Run, [("--training.compile", None)])]).training.compile


def test_lists_and_none_as_flags():
    flags = [("--baselines", "random,greedy"), ("--evaluation.every", "none"), ("--algorithm.clip", "none")]
    config = resolve(Run, [base(), from_flags(Run, flags)])
    assert config.evaluation.baselines == ("random", "greedy")
    assert config.evaluation.every is None
    assert config.algorithm.clip is None


def test_none_is_a_word_where_the_field_has_it_as_one():
    config = resolve(Run, [base(), from_flags(Run, [("--model.norm", "none"), ("--model.kind", "none")])])
    assert (config.model.norm, config.model.kind) == ("none", "none")


def test_another_kind_of_schedule_replaces_the_old_one_whole():
    layer = from_flags(Run, [("--training.schedules.clip", "{kind: cosine, start: 0.2, warmup_frames: 5}")])
    schedules = resolve(Run, [base(), layer]).training.schedules
    assert schedules == {"clip": Cosine(start=0.2, warmup_frames=5)}


def test_a_kind_that_chooses_no_fields_keeps_its_neighbours():
    config = resolve(Run, [base(), from_flags(Run, [("--model.kind", "deep")])])
    assert (config.model.kind, config.model.hidden) == ("deep", 5)


def test_every_problem_is_named_at_once_with_its_place(tmp_path):
    layer = file(
        tmp_path,
        "sed: 3\n"
        "env:\n"
        "  size: big\n"
        "  noise: .inf\n"
        "training:\n"
        "  num_envs: some\n"
        "  schedules:\n"
        "    learning_rat: {kind: linear, start: 1}\n"
        "    epochs: {start: 1}\n"
        "    clip: {kind: liner, start: 1}\n"
        "  curriculum:\n"
        "    - {name: a, env: {size: 4}}\n"
        "    - {name: b, env: {siz: 4}, untl: 3}\n"
        "evaluation: {settings: {noise: loud}}\n",
    )
    found = faults(layer, from_flags(Run, [("--threads", "0"), ("--sede", "3"), ("--every", "7")]))
    lines = {path: problem.origin.rpartition(" ")[2] for path, problem in found.items() if path}
    assert lines == {
        "sed": "1",
        "env.size": "3",
        "env.noise": "4",
        "training.num_envs": "6",
        "training.schedules.learning_rat": "8",
        "training.schedules.epochs": "9",
        "training.schedules.clip": "10",
        "training.curriculum.1.env.siz": "13",
        "training.curriculum.1.untl": "13",
        "evaluation.settings.noise": "14",
        "threads": "--threads",
    }


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--sede", "did you mean seed?"),
        ("--env.sise", "did you mean size?"),
        ("--totl-frames", "did you mean total_frames?"),
        ("--every", "evaluation.every or checkpoint.every or logging.every"),
        ("--seed.more", "no names of its own"),
    ],
)
def test_a_name_that_is_not_known(flag, says):
    with pytest.raises(ConfigError) as caught:
        resolve(Run, [base(), from_flags(Run, [(flag, "3")])])
    assert flag in str(caught.value)
    assert says in str(caught.value)


def test_a_union_says_all_that_would_do():
    assert str(faults(from_flags(Run, [("--num-envs", "many")]))["training.num_envs"]) == (
        '--num-envs: training.num_envs: got "many", expected a whole number'
    )


def test_what_is_missing_is_named():
    with pytest.raises(ConfigError, match=r"algorithm: is missing"):
        resolve(Run, [Layer("mine.json", {"recipe": "x", "name": "x", "env": {}, "model": {}})])


def test_a_value_set_twice_on_one_command_line():
    assert "set twice" in str(faults(from_flags(Run, [("--seed", "1"), ("--seed", "2")]))["seed"])


def test_a_schedule_must_stay_within_what_its_field_allows():
    flags = [("--training.schedules.learning-rate", "{kind: linear, start: 1e-3, end: 0}")]
    assert "reach 0" in str(faults(from_flags(Run, flags))["training.schedules.learning_rate"])


def test_a_schedule_whose_end_is_left_out_must_stay_within_it_too():
    schedule = {"kind": "linear", "start": 1e-3}
    keywords = {"training": {"schedules": {"learning_rate": schedule}}}
    assert "reach 0" in str(faults(from_keywords(Run, keywords))["training.schedules.learning_rate"])


def test_a_number_that_is_built_in_cannot_be_scheduled():
    flags = [("--training.schedules.gamma", "{kind: linear, start: 0.9, end: 0.99}")]
    assert "cannot be scheduled" in str(faults(from_flags(Run, flags))["training.schedules.gamma"])


def test_stages_need_an_end_and_a_name_of_their_own():
    with pytest.raises(ValueError, match="only the last stage"):
        TrainingConfig(curriculum=(Stage(name="a"), Stage(name="b")))
    with pytest.raises(ValueError, match="different names"):
        TrainingConfig(curriculum=(Stage(name="a", until=Until(frames=3)), Stage(name="a")))


@pytest.mark.parametrize(
    "fields", [{}, {"metric": "m"}, {"at_least": 1.0}, {"metric": "m", "at_least": 1, "at_most": 2}]
)
def test_a_stage_must_say_when_it_ends(fields):
    with pytest.raises(ValueError, match=r"give frames|exactly one"):
        Until(**fields)


def test_what_is_written_is_read_back():
    assert Run.from_plain(BASE.to_plain()) == BASE


class Walk(Config):
    noisy: bool = False
    noise: Annotated[float, AppliesIf("noisy is true", lambda _, own: own.noisy)] = 0.1
    """Size of the noise."""


class Tour(Config):
    long: bool = True
    walk: Walk = Walk()
    rest: Annotated[int, AppliesIf("walk.noisy is true", lambda run, _: run.walk.noisy)] = 3


def test_a_setting_without_effect_is_refused_where_it_is_given():
    base, flags = Layer("recipe"), Layer("flags", {"walk": {"noise": 0.2}, "rest": 4})
    with pytest.raises(ConfigError) as caught:
        resolve(Tour, [base, flags])
    assert "walk.noise: would have no effect: it applies only if noisy is true" in str(caught.value)
    assert "rest: would have no effect: it applies only if walk.noisy is true" in str(caught.value)
    chosen = resolve(Tour, [base, flags, Layer("more", {"walk": {"noisy": True}})])
    assert (chosen.walk.noise, chosen.rest) == (0.2, 4)


def test_a_setting_that_the_first_layer_left_without_effect_is_no_problem():
    """A flag may switch off what a recipe has settings for."""
    recipe = Layer("recipe", {"walk": {"noisy": True, "noise": 0.2}})
    chosen = resolve(Tour, [recipe, Layer("flags", {"walk": {"noisy": False}})])
    assert chosen.walk.noise == 0.2


def test_a_setting_without_effect_is_not_shown():
    shown = {".".join(map(str, leaf.path)) for leaf in leaves(Tour, Tour())}
    assert shown == {"long", "walk.noisy"}
    noisy = Tour(walk=Walk(noisy=True))
    assert {leaf.path[-1] for leaf in leaves(Tour, noisy)} == {"long", "noisy", "noise", "rest"}
    assert {leaf.path[-1] for leaf in leaves(Tour)} == {"long", "noisy", "noise", "rest"}


@pytest.mark.parametrize("name", recipes())
def test_no_recipe_has_a_setting_without_effect(name):
    assert list(unused_settings(recipe(name).config)) == []
