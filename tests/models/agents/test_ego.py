"""What one robot sees: the published sizes, silence of empty slots, and no order in a graph."""

import pytest
import torch
from tests.models.views import random_view

from edgewise.config.errors import ConfigError
from edgewise.models.agents.categorical import CategoricalQNetwork
from edgewise.models.agents.ego import EgoSpec, FlatEgo, GraphEgo, make_ego_encoder, nearest_gap
from edgewise.models.agents.networks import ActionCritic, PolicyNetwork, QNetwork
from edgewise.models.agents.quantile import QuantileCritic, QuantileQNetwork, even_levels
from edgewise.models.config import EgoConfig
from edgewise.systems.marine.models.config import OBJECT_SCALE, SELF_SCALE

SPEC = EgoSpec()
KINDS = ("flat", "graph")


def features(config):
    return make_ego_encoder(SPEC, config)


SIZES = {
    "DQN": (lambda config: QNetwork(features(config), hidden=128, num_actions=25), 53_321),
    "IQN": (lambda c: QuantileQNetwork(features(c), hidden=128, cosines=64, num_actions=25), 69_961),
    "actor": (lambda config: PolicyNetwork(features(config), hidden=128, outputs=2), 50_354),
    "actor of SAC": (lambda config: PolicyNetwork(features(config), hidden=128, outputs=4), 50_612),
    "critic of DDPG and SAC": (lambda config: ActionCritic(features(config), hidden=128, dim=2), 50_609),
    "critic of AC-IQN": (lambda c: QuantileCritic(features(c), hidden=128, cosines=64, dim=2), 67_249),
    "Rainbow": (lambda config: CategoricalQNetwork(features(config), hidden=128, num_actions=25), 540_428),
}


def output(network, view):
    """What any of the networks says of a view, chance left out."""
    lead = view.batch_size
    if isinstance(network, CategoricalQNetwork):
        return network(view, "none")
    arguments = [torch.full((*lead, 2), 0.3)] if isinstance(network, ActionCritic | QuantileCritic) else []
    if isinstance(network, QuantileQNetwork | QuantileCritic):
        arguments.append(even_levels(view["self"], 4))
    return network(view, *arguments)


@pytest.mark.parametrize("name", SIZES)
def test_flat_networks_have_the_published_number_of_parameters(name):
    build, wanted = SIZES[name]
    assert sum(parameter.numel() for parameter in build(EgoConfig()).parameters()) == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SIZES)
def test_rows_stand_alone_and_every_parameter_matters(name, kind):
    network, view = SIZES[name][0](EgoConfig(encoder=kind)), random_view(6, 3)
    found = output(network, view)
    assert found.shape[:2] == (6, 3)
    torch.testing.assert_close(output(network, view[2, 1]), found[2, 1], atol=1e-4, rtol=1e-4)
    (network(view) if name == "Rainbow" else found).square().sum().backward()
    silent = [each for each, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_empty_slot_holds_never_matters(kind):
    encoder, view = make_ego_encoder(SPEC, EgoConfig(encoder=kind)), random_view(20)
    filthy = view.clone()
    filthy["objects"][~view["mask"]] = torch.nan
    first, second = encoder(view), encoder(filthy)
    assert torch.equal(first, second)
    second.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


@pytest.mark.parametrize("name", ["IQN", "critic of AC-IQN"])
def test_levels_that_all_rows_share_are_the_same_function(name):
    """Gates that moved to the weights, against gates on every row; gradients too."""
    network, view = SIZES[name][0](EgoConfig()), random_view(6)
    action = [] if name == "IQN" else [torch.rand(6, 2)]
    levels = even_levels(view["self"], 4)
    shared, own = network(view, *action, levels), network(view, *action, levels.expand(6, 4))
    torch.testing.assert_close(shared, own, atol=1e-4, rtol=1e-4)
    parameters = list(network.parameters())
    first, second = (torch.autograd.grad(each.square().sum(), parameters) for each in (shared, own))
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, atol=1e-2, rtol=1e-3)


def test_flat_features_are_the_layers_by_hand():
    """Unscaled, as the published weights are used; an object's layer is the same in every slot."""
    encoder, view = FlatEgo(SPEC, EgoConfig(inputs="raw")), random_view(4)
    found = encoder(view)
    assert found.shape == (4, 256)
    for row in range(4):
        parts = [encoder.own(view["self"][row]).relu()]
        for slot in range(5):
            seen = encoder.objects(view["objects"][row, slot]).relu()
            parts.append(seen if view["mask"][row, slot] else torch.zeros(40))
        torch.testing.assert_close(found[row], torch.cat(parts), atol=1e-3, rtol=1e-4)


def test_scales_bring_all_inputs_near_one():
    encoder, view = (
        FlatEgo(SPEC, EgoConfig(inputs="physical", self_scale=SELF_SCALE, object_scale=OBJECT_SCALE)),
        random_view(500),
    )
    own, objects, mask = encoder.scaled(view)
    assert ((own.std(0) > 0.2) & (own.std(0) < 2)).all()
    assert (objects[mask].std(0) < 2).all()
    assert torch.equal(FlatEgo(SPEC, EgoConfig()).scaled(view)[0], view["self"])


def test_scales_that_do_not_fit_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"model\.self_scale has 7 numbers, but 6 are observed"):
        FlatEgo(EgoSpec(own=6), EgoConfig(self_scale=(1.0,) * 7))
    with pytest.raises(ConfigError, match=r"model\.self_scale has 0 numbers, but 7 are observed"):
        FlatEgo(SPEC, EgoConfig(inputs="physical"))


def test_a_graph_knows_no_order_and_flat_slots_do():
    view = random_view(30, share=1.0)
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = view.clone()
    shuffled["objects"], shuffled["mask"] = view["objects"][:, order], view["mask"][:, order]
    graph, flat = GraphEgo(SPEC, EgoConfig(encoder="graph")), FlatEgo(SPEC, EgoConfig())
    torch.testing.assert_close(graph(shuffled), graph(view), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(flat(shuffled), flat(view))


def test_a_graph_has_no_cap():
    """The same weights see 12 objects; of them, those that are not there change nothing."""
    graph, few = GraphEgo(SPEC, EgoConfig(encoder="graph")), random_view(8, share=1.0)
    many = random_view(8, slots=12, seed=1, share=1.0)
    many["objects"][:, :5], many["self"] = few["objects"], few["self"]
    seen = graph(many)
    many["mask"][:, 5:] = False
    torch.testing.assert_close(graph(many), graph(few), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(seen, graph(few), atol=1e-2)


def test_a_lonely_robot_is_no_trouble():
    for kind in KINDS:
        assert make_ego_encoder(SPEC, EgoConfig(encoder=kind))(random_view(3, share=0.0)).isfinite().all()


def test_the_spec_of_a_view():
    assert EgoSpec.of(random_view(2, 3, slots=8)) == EgoSpec(own=7, features=5, slots=8)


def test_the_gap_to_the_nearest_object():
    view = random_view(1)
    view["objects"][0] = torch.tensor(
        [[3.0, 4, 0, 0, 1], [0, 9, 0, 0, 7], [0.1, 0, 0, 0, 0], [20, 0, 0, 0, 3], [8, 0, 0, 0, 1]]
    )
    view["mask"][0] = torch.tensor([True, False, False, True, True])
    assert nearest_gap(view, radius=2.5).item() == 1.5
    assert nearest_gap(view, radius=2.5, units=(2.0, 3.0)).item() == 4.5
    view["mask"][0] = False
    assert nearest_gap(view, radius=2.5).item() == float("inf")
