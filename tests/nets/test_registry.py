from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import pytest
import torch
from tests.conftest import seeded
from torch import Tensor, nn
from torch.func import functional_call, grad

from condense_once import registry
from condense_once.errors import BadOption, UnknownName
from condense_once.nets import NETS, ConvNet, NetInfo, Network, initialise, make_net, penultimate
from condense_once.nets.convnet import Norm
from condense_once.nets.registry import Nets
from condense_once.registry import Registry

NAMES = [
    "convnet-d3",
    "convnet-d4",
    "convnet-d3-bn",
    "convnet-d3-w32",
    "resnet10-ap",
    "resnet10",
    "resnet10-imagenet",
    "resnet18",
    "resnet18-imagenet",
    "densenet",
]
SHAPE = (3, 16, 16)


def weights(net: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in net.parameters()])


def linear_factory(shape: tuple[int, int, int], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], 6), nn.ReLU(), nn.Linear(6, classes))


def constant_factory(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """A network with its own way of initialising: a random bias and weights that are all 0.5."""
    linear = nn.Linear(shape[0] * shape[1] * shape[2], classes)
    nn.init.constant_(linear.weight, 0.5)
    return nn.Sequential(nn.Flatten(), linear)


@pytest.fixture(autouse=True)
def global_random_state_stays_untouched() -> Iterator[None]:
    before = torch.get_rng_state()
    yield
    assert torch.equal(torch.get_rng_state(), before)


def test_every_name_is_listed() -> None:
    assert set(NETS.names()) >= set(NAMES)
    assert NETS.names("convnet-d3*") == ["convnet-d3", "convnet-d3-bn", "convnet-d3-w32"]
    assert all(info.summary for info in NETS)


def test_an_unknown_name_answers_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no 'convnet-3' among the nets; did you mean 'convnet-d3'"):
        make_net("convnet-3", SHAPE, 10, generator=seeded(0))


@pytest.mark.parametrize(
    ("name", "depth", "channels", "norm"),
    [
        ("convnet-d5", 5, 128, "instance"),
        ("convnet-d1-w8", 1, 8, "instance"),
        ("convnet-d4-bn", 4, 128, "batch"),
        ("convnet-d2-w12-ln", 2, 12, "layer"),
        ("convnet-d2-w12-gn", 2, 12, "group"),
        ("convnet-d3-none", 3, 128, "none"),
    ],
)
def test_any_convnet_is_made_by_its_name(name: str, depth: int, channels: int, norm: Norm) -> None:
    net = make_net(name, (3, 32, 32), 4, generator=seeded(0))
    with torch.random.fork_rng(devices=[]):
        expected = ConvNet((3, 32, 32), 4, depth=depth, channels=channels, norm=norm)
    assert repr(net) == repr(expected)
    assert NETS.get(name).name == name


def test_listed_names_mean_what_their_parts_say() -> None:
    only_parsed = Nets("nets")
    for name in NETS.names("convnet-*"):
        with torch.random.fork_rng(devices=[]):
            assert repr(only_parsed.get(name).build((3, 32, 32), 4)) == repr(NETS.get(name).build((3, 32, 32), 4))


@pytest.mark.parametrize("name", ["convnet-d3-xn", "convnet-d3-bn-w8", "convnet-d٣", "convnet-d3-w99999", "convnet-d"])
def test_a_convnet_that_cannot_be_is_told_how_they_are_called(name: str) -> None:
    with pytest.raises(UnknownName, match="named convnet-dDEPTH"):
        NETS.get(name)


@pytest.mark.parametrize(("name", "complaint"), [("convnet-d0", "at least 1"), ("convnet-d9", "at most 4")])
def test_a_name_of_a_convnet_that_does_not_fit_the_image_is_refused(name: str, complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        make_net(name, SHAPE, 2, generator=seeded(0))


def test_another_distribution_adds_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [PLUGIN] if group == "condense_once.nets" else [])
    nets: Registry[NetInfo] = Registry("nets")
    assert nets.names() == ["shallow"]
    assert nets.get("shallow") is SHALLOW
    with NETS.registered(SHALLOW):
        assert make_net("shallow", SHAPE, 2, generator=seeded(0))(torch.zeros(1, *SHAPE)).shape == (1, 2)


SHALLOW = NetInfo("shallow", "one block", lambda shape, classes: ConvNet(shape, classes, depth=1, channels=4))


class Point(EntryPoint):
    def load(self) -> NetInfo:
        return SHALLOW


PLUGIN = Point("shallow", "elsewhere:SHALLOW", "condense_once.nets")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "classes"), [((3, 16, 16), 3), ((1, 28, 28), 10), ((3, 20, 33), 2)])
def test_logits_are_the_classifier_of_the_features(name: str, shape: tuple[int, int, int], classes: int) -> None:
    net = make_net(name, shape, classes, generator=seeded(0)).eval()
    assert isinstance(net, Network)
    x = torch.randn(2, *shape, generator=seeded(1))
    with torch.no_grad():
        features = net.features(x)
        assert features.shape == (2, net.classifier.in_features)
        assert net(x).shape == (2, classes)
        assert torch.equal(net.classifier(features), net(x))
        assert torch.equal(penultimate(net, x), features)


@pytest.mark.parametrize("net", ["convnet-d3-w32", "resnet10", "densenet", linear_factory, constant_factory])
def test_the_seed_decides_the_weights_whether_made_or_initialised_in_place(
    net: str | Callable[[tuple[int, int, int], int], nn.Module],
) -> None:
    first = make_net(net, SHAPE, 3, generator=seeded(1))
    expected = weights(first)
    assert torch.equal(weights(make_net(net, SHAPE, 3, generator=seeded(1))), expected)
    places = [weight.data_ptr() for weight in first.parameters()]
    initialise(first, seeded(2))
    assert not torch.equal(weights(first), expected)
    initialise(first, seeded(1))
    assert torch.equal(weights(first), expected)
    assert [weight.data_ptr() for weight in first.parameters()] == places


def test_one_generator_gives_a_different_network_each_time() -> None:
    generator = seeded(0)
    nets = [make_net(net, SHAPE, 3, generator=generator) for net in ("convnet-d3-w32", linear_factory) for _ in "ab"]
    assert not torch.equal(weights(nets[0]), weights(nets[1]))
    assert not torch.equal(weights(nets[2]), weights(nets[3]))


@pytest.mark.parametrize("name", ["convnet-d3-w32", "convnet-d3-bn", "densenet"])
def test_weights_are_those_pytorch_itself_would_draw(name: str) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        default = NETS.get(name).build(SHAPE, 3)
    ours = make_net(name, SHAPE, 3, generator=seeded(5))
    for expected, weight in zip(default.state_dict().values(), ours.state_dict().values(), strict=True):
        torch.testing.assert_close(weight, expected)


def test_uniform_weights_fill_their_bounds() -> None:
    net = make_net("convnet-d3", SHAPE, 100, generator=seeded(0))
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            bound = layer.weight[0].numel() ** -0.5
            n = layer.weight.numel()
            assert 0.99 * bound < layer.weight.max() <= bound
            assert -bound <= layer.weight.min() < -0.99 * bound
            assert abs(layer.weight.std() / bound - 3**-0.5) < 4 * n**-0.5
            assert layer.bias is not None
            assert 0.8 * bound < layer.bias.abs().max() <= bound


def test_layout_and_precision_do_not_change_the_weights() -> None:
    net = make_net("resnet10", SHAPE, 3, generator=seeded(1))
    expected = weights(net)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    initialise(net, seeded(1))
    assert torch.equal(weights(net), expected)
    net.double()
    initialise(net, seeded(1))
    assert torch.equal(weights(net), expected.double())


def test_compiled_code_serves_every_fresh_start() -> None:
    compilations = itertools.count()

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., object]:
        next(compilations)
        return graph.forward

    net = make_net("convnet-d3-w32", SHAPE, 3, generator=seeded(0))
    x = torch.randn(2, *SHAPE, generator=seeded(1))
    compiled = torch.compile(net, backend=backend, fullgraph=True)
    answers = []
    for seed in range(3):
        initialise(net, seeded(seed))
        answers.append(compiled(x))
        torch.testing.assert_close(answers[-1], net(x))
    assert next(compilations) == 1
    assert not torch.allclose(answers[0], answers[1])


@pytest.mark.parametrize("name", ["convnet-d3-w32", "resnet10-ap"])
def test_a_gradient_of_gradients_reaches_the_image(name: str) -> None:
    net = make_net(name, SHAPE, 3, generator=seeded(0)).double()
    params = {key: weight.detach() for key, weight in net.named_parameters()}
    label = torch.tensor([1])

    def loss(params: dict[str, Tensor], x: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(net, params, (x,)), label)

    def gradient_size(x: Tensor) -> Tensor:
        return sum((g.square().sum() for g in grad(loss)(params, x).values()), start=torch.zeros((), dtype=x.dtype))

    x = torch.randn(1, *SHAPE, generator=seeded(2), dtype=torch.float64)
    direction = torch.randn(1, *SHAPE, generator=seeded(3), dtype=torch.float64)
    slope = (grad(gradient_size)(x) * direction).sum()
    step = 1e-6
    with torch.no_grad():
        measured = (gradient_size(x + step * direction) - gradient_size(x - step * direction)) / (2 * step)
    torch.testing.assert_close(slope, measured, rtol=1e-3, atol=1e-6)
    assert slope.abs() > 0


def test_a_factory_keeps_its_own_way_of_initialising() -> None:
    net = make_net(constant_factory, SHAPE, 3, generator=seeded(0))
    initialise(net, seeded(1))
    assert torch.all(net.state_dict()["1.weight"] == 0.5)


def test_a_module_may_initialise_itself() -> None:
    class Own(nn.Linear):
        def initialise(self, generator: torch.Generator) -> None:
            nn.init.normal_(self.weight, generator=generator)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.flatten(1))

    net = make_net(lambda shape, classes: Own(shape[0], classes), (3, 1, 1), 2, generator=seeded(4))
    assert torch.equal(net.state_dict()["weight"], torch.randn(2, 3, generator=seeded(4)))


def test_a_bare_module_is_reset_layer_by_layer() -> None:
    with torch.random.fork_rng(devices=[]):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False), nn.Flatten(), nn.LazyLinear(2))
        net(torch.randn(2, *SHAPE))
    initialise(net, seeded(1))
    expected = weights(net)
    assert torch.all(net.state_dict()["1.running_mean"] == 0)
    initialise(net, seeded(2))
    assert not torch.equal(weights(net), expected)
    initialise(net, seeded(1))
    assert torch.equal(weights(net), expected)


def test_weights_nobody_knows_how_to_draw_are_named() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

    with pytest.raises(BadOption, match=r"Scaled in Sequential .* no reset_parameters"):
        initialise(nn.Sequential(Scaled()), seeded(0))


def test_a_network_with_an_unknown_layer_must_say_how_to_draw_it() -> None:
    class Odd(ConvNet):
        def __init__(self) -> None:
            super().__init__(SHAPE, 2, depth=1, channels=4)
            self.slope = nn.PReLU()

    with torch.random.fork_rng(devices=[]):
        net = Odd()
    with pytest.raises(BadOption, match=r"Odd has a PReLU.*override initialise"):
        initialise(net, seeded(0))


@pytest.mark.parametrize(("shape", "classes"), [((3, 32), 10), ((0, 32, 32), 10), ((3, 32, 32), 0)])
def test_impossible_shapes_are_refused(shape: tuple[int, int, int], classes: int) -> None:
    with pytest.raises(BadOption, match="all at least 1"):
        make_net("convnet-d3", shape, classes, generator=seeded(0))


def test_a_factory_that_makes_no_module_is_refused() -> None:
    with pytest.raises(BadOption, match="not int"):
        make_net(lambda shape, classes: classes, SHAPE, 2, generator=seeded(0))  # type: ignore[arg-type,return-value]


def test_penultimate_of_a_foreign_module_is_what_its_last_used_linear_layer_reads() -> None:
    class HeadFirst(nn.Module):
        """Registers its classifier before the layer that feeds it, and calls something else `features`."""

        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(6, 2)
            self.features = nn.Linear(4, 6)

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.head(self.features(x.flatten(1)).tanh())
            return logits

    with torch.random.fork_rng(devices=[]):
        net = HeadFirst()
    x = torch.randn(3, 1, 2, 2, generator=seeded(0))
    found = penultimate(net, x)
    torch.testing.assert_close(net.head(found), net(x))
    assert found.requires_grad
    assert not any(layer._forward_pre_hooks for layer in net.modules())


def test_no_linear_layer_no_penultimate_features() -> None:
    with torch.random.fork_rng(devices=[]):
        net = nn.Sequential(nn.Conv2d(3, 2, 16), nn.Flatten())
    with pytest.raises(BadOption, match=r"Sequential uses no torch\.nn\.Linear"):
        penultimate(net, torch.zeros(1, *SHAPE))
