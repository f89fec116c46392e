"""`training.compile`: which parts of which models are compiled, and from which length of a run on."""

from shutil import which

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from edgewise.config.errors import ConfigError
from edgewise.experiments import compilation
from edgewise.experiments.build import Builder
from edgewise.experiments.compilation import EARNED_BACK, learned_channels, trunks_of
from edgewise.experiments.load import load_config
from edgewise.models.compile import cpp_compiler
from edgewise.models.native import attention as native

GRAPHWALK = 20
"""Node slots of graphwalk-ppo."""

needs_compiler = pytest.mark.skipif(which(cpp_compiler()) is None, reason="no C++ compiler on this machine")


def build(source, wish, algorithm=None, **settings):
    """Build the algorithm of a run; compiling begins with its first call."""
    config = load_config(source, algorithm=algorithm, keywords={"training.compile": wish, **settings})
    return Builder(config, num_envs=2, rollout_length=2).algorithm


def compiled(algorithm):
    """List which trunks of an algorithm are compiled."""
    return [trunk._compiled_call_impl is not None for trunk in trunks_of(algorithm)]


@needs_compiler
@pytest.mark.parametrize(
    "source, algorithm, trunks",
    [
        ("graphwalk-ppo", None, 2),  # actor and critic
        ("swarm-mappo", None, 1),  # which share theirs
        ("graphwalk", "dqn", 2),  # network and target network
        ("queueing-line3-clone", None, 2),
        ("graphwalk", "reinforce", 1),  # the actor
    ],
)
def test_all_message_passing_is_compiled_if_asked_for(source, algorithm, trunks):
    assert compiled(build(source, True, algorithm)) == [True] * trunks
    assert not any(compiled(build(source, False, algorithm)))


def test_models_without_message_passing_are_refused_in_words():
    with pytest.raises(ConfigError, match=r"training\.compile: the model passes no messages"):
        build("marine-dqn", True)
    assert compiled(build("marine-dqn", "auto")) == []


@needs_compiler
def test_auto_compiles_long_runs_only():
    """Two trunks of four layers of width 32 on twenty nodes, three epochs."""
    per_frame = 3 * GRAPHWALK * 2 * 4 * 32
    enough = int(EARNED_BACK // per_frame) + 1
    assert all(compiled(build("graphwalk-ppo", "auto", total_frames=enough)))
    assert not any(compiled(build("graphwalk-ppo", "auto", total_frames=enough - 1)))


def test_the_work_of_a_run_follows_from_its_config():
    config = load_config("graphwalk", algorithm="dqn", keywords={"total_frames": 1000})
    algorithm = Builder(config, num_envs=2, rollout_length=2).algorithm
    trunks = trunks_of(algorithm)
    settings, encoder = config.algorithm, config.model.encoder
    graphs = 1000 * settings.updates_per_transition * settings.minibatch_size
    channels = len(trunks) * encoder.layers * encoder.hidden
    assert learned_channels(config, trunks, num_nodes=7) == pytest.approx(graphs * 7 * channels)


def test_auto_leaves_algorithms_of_unknown_work_as_they_are():
    assert not any(compiled(build("queueing-line3-clone", "auto", total_frames=10**12)))


def learned(algorithm, wish):
    """Return the weights after some batches of small graphs of several sizes."""
    small = {"model.encoder.hidden": 8, "model.encoder.layers": 1, "algorithm.minibatch_size": 12}
    if algorithm == "dqn":
        small |= {"algorithm.learning_starts": 0, "algorithm.updates_per_transition": 0.2}
    config = load_config("graphwalk", algorithm=algorithm, keywords={"training.compile": wish, **small})
    builder = Builder(config, num_envs=4, rollout_length=8)
    learner, collector = builder.algorithm, builder.collector
    torch.manual_seed(0)
    for _ in range(3):
        learner.learn(collector.collect())
    models = [each for each in vars(learner).values() if isinstance(each, torch.nn.Module)]
    return torch.cat([weight.detach().flatten() for weight in models[0].parameters()])


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_one_graph_serves_unions_of_all_sizes(algorithm, monkeypatch):
    """Traced by dynamo and run eagerly: compiling for real takes half a minute."""
    torch.compiler.reset()
    # Compiled code cannot call C: both run in torch, and agree but for the order of sums.
    monkeypatch.setattr(native, "takes", lambda *_, **__: False)
    traced = CompileCounter()

    def trace(trunk, *, enabled):
        if enabled:
            trunk.compile(dynamic=True, backend=traced)

    monkeypatch.setattr(compilation, "compile_module", trace)
    found = learned(algorithm, True)
    torch.testing.assert_close(found, learned(algorithm, False))
    assert 1 <= traced.frame_count <= 4  # actor and critic, or network and target, with and without gradients


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_compiled_models_learn_the_same(algorithm):
    found, expected = learned(algorithm, True), learned(algorithm, False)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
