"""Networks of users: a factory, a class or a module is checked before training, re-initialised per run and named in files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import seeded
from torch import Tensor, nn

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.evaluation.protocols import Protocol
from condense_once.metrics import MetricConfig
from condense_once.nets import ConvNet, NetChoice, initialise, make_net, net_name
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer

SHAPE = (3, 8, 8)
SHORT = MetricConfig(scoring_epochs=2, el2n_epochs=2)
ONCE = Protocol("once", "one epoch", Recipe(epochs=1), Recipe(epochs=1))


class Tiny(nn.Module):
    def __init__(self, shape: tuple[int, int, int] = SHAPE, classes: int = 3) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(shape[0])
        self.head = nn.Linear(shape[0] * shape[1] * shape[2], classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(x).flatten(1))
        return logits


def weights(net: nn.Module) -> Tensor:
    return torch.cat([value.detach().flatten().float() for value in net.state_dict().values()])


@pytest.fixture
def module() -> nn.Module:
    """A module that has been trained before, on other images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        trained = Tiny()
        trained(torch.randn(4, *SHAPE)).square().sum().backward()
        for weight in trained.parameters():
            weight.data += 100
    return trained


def test_a_module_is_copied_and_initialised_by_the_seed(module: nn.Module) -> None:
    before = weights(module)
    first = make_net(module, SHAPE, 3, generator=seeded(1))
    assert torch.equal(weights(first), weights(make_net(module, SHAPE, 3, generator=seeded(1))))
    assert not torch.equal(weights(first), weights(make_net(module, SHAPE, 3, generator=seeded(2))))
    assert weights(first).abs().max() <= 1  # nothing of the trained weights and running statistics
    assert torch.equal(weights(module), before)
    expected = weights(first)
    initialise(first, seeded(5))
    initialise(first, seeded(1))
    assert torch.equal(weights(first), expected)


def test_a_module_of_ours_initialises_itself() -> None:
    with torch.random.fork_rng(devices=[]):
        own = ConvNet(SHAPE, 3, depth=1, channels=8)
    by_name = make_net("convnet-d1-w8", SHAPE, 3, generator=seeded(1))
    assert torch.equal(weights(make_net(own, SHAPE, 3, generator=seeded(1))), weights(by_name))


def test_a_module_that_a_factory_made_is_made_anew_by_it() -> None:
    def scaled(shape: tuple[int, int, int], classes: int) -> nn.Module:
        net = Tiny(shape, classes)
        nn.init.constant_(net.head.weight, 0.25)
        return net

    copied = make_net(make_net(scaled, SHAPE, 3, generator=seeded(0)), SHAPE, 3, generator=seeded(1))
    assert torch.all(copied.state_dict()["head.weight"] == 0.25)


class Unresettable(Tiny):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))


class TwoOutputs(Tiny):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), x


def no_classes(shape: tuple[int, int, int]) -> nn.Module:
    return Tiny(shape)


def fails(shape: tuple[int, int, int], classes: int) -> nn.Module:
    raise KeyError("weights")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Tiny(classes=4), r"Tiny must map \[n, 3, 8, 8\] to \[n, 3\].* returned shape \[2, 4\]"),
        (lambda: Tiny((3, 4, 4)), r"Tiny does not take images of 3×8×8: RuntimeError: "),
        (TwoOutputs, "TwoOutputs must map .* returned tuple"),
        (Unresettable, r"no reset_parameters\(\); pass a factory\(shape, classes\)"),
        (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), "lazy layers .*; run a batch through it first"),
        (
            lambda: no_classes,
            r"no_classes cannot be made: it is called as factory\(shape, classes\), such as .* fails: too many",
        ),
        (lambda: fails, "fails cannot be made: .* raised KeyError"),
        (lambda: 3, r"`net` must be a name, a torch.nn.Module or a factory\(shape, classes\).*, not int"),
        (lambda: lambda shape, classes: Tiny(shape, 1), "The network custom must map"),
    ],
)
def test_what_will_not_do_is_refused_before_training(
    make: Callable[[], Any], complaint: str, pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.random.fork_rng(devices=[]):
        net = make()
    monkeypatch.setattr(Trainer, "fit", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(BadOption, match=complaint) as caught:
        condense_once.rank(pixel_set, "el2n", net=net, config=SHORT)
    assert "\n" not in str(caught.value)


def test_an_evaluation_refuses_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "fit", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(BadOption, match="Tiny does not take images of 3×32×32"):
        condense_once.evaluate("cifar10-real-ipc10", "cifar10-sample", net=Tiny())


def test_a_network_without_features_is_refused_before_training_if_a_metric_reads_them(
    pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.random.fork_rng(devices=[]):
        convolution = nn.Sequential(nn.Conv2d(3, 3, 8), nn.Flatten())
    monkeypatch.setattr(Trainer, "fit", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(BadOption, match="no penultimate features"):
        condense_once.score(pixel_set, "herding", net=convolution, config=SHORT)


@pytest.mark.parametrize("given", ["class", "factory", "partial", "module"])
def test_a_set_ranked_by_a_network_of_ones_own_names_it(
    given: str, module: nn.Module, pixel_set: CondensedSet, tmp_path: Path
) -> None:
    nets: dict[str, NetChoice] = {"class": Tiny, "partial": partial(Tiny), "module": module}
    net = nets.get(given) or (lambda shape, classes: Tiny(shape, classes))
    path = tmp_path / "ranked.safetensors"
    condense_once.save(condense_once.rank(pixel_set, "el2n", net=net, config=SHORT), path)
    ranking = condense_once.load(path).ranking
    assert ranking is not None
    assert ranking.settings["net"] == net_name(net) == ("custom" if given == "factory" else "Tiny")


def test_a_module_is_evaluated_from_other_weights_in_each_repeat(module: nn.Module) -> None:
    data = condense_once.load("cifar10-real-ipc10", first=20)
    with torch.random.fork_rng(devices=[]):
        large = Tiny((3, 32, 32), 10)
    result = condense_once.evaluate(data, "cifar10-sample", protocol=ONCE, net=large, repeats=2)
    again = condense_once.evaluate(data, "cifar10-sample", protocol=ONCE, net=large, repeats=2)
    assert result.net == "Tiny"
    assert result.runs[0].accuracy != result.runs[1].accuracy
    assert [run.accuracy for run in result.runs] == [run.accuracy for run in again.runs]
