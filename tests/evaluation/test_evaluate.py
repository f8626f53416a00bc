from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest
import torch

from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption, UnknownName
from condense_once.evaluation import evaluate as evaluation
from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.protocols import AUTHORS, PAPER, Protocol
from condense_once.evaluation.result import EvaluationRun, Result
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import threads
from condense_once.train.recipe import Recipe

NET = "convnet-d3-w32"
SHORT = Recipe(epochs=4, batch=8)
TINY = Protocol("tiny", "for tests", SHORT, SHORT)


@pytest.fixture
def task() -> tuple[CondensedSet, Source]:
    """Two classes, lying and standing stripes, that a network learns in a few epochs."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    lying = np.indices((8, 8))[0] // 2 % 2
    stripes = np.where(labels[:, None, None, None] == 0, lying, lying.T)
    images = (100 * stripes + rng.integers(0, 150, (40, 3, 8, 8))).astype(np.uint8)
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    classes = ("lying", "standing")
    data = CondensedSet.from_mosaics(images[:16], labels[:16], factor=1, space=space, classes=classes, name="task")
    return data, Source("stripes", classes, space.mean, space.std, {"test": ArraySplit(images[16:], labels[16:])})


def accuracies(result: Result) -> list[float]:
    return [run.accuracy for run in result.runs]


def test_the_same_seed_gives_the_same_result_however_many_run_in_parallel(task: tuple[CondensedSet, Source]) -> None:
    one, two = (
        evaluate(*task, protocol=TINY, net=NET, repeats=4, compute=ComputeConfig(workers=workers)) for workers in (1, 2)
    )
    assert accuracies(one) == accuracies(two)
    assert [run.repeat for run in two.runs] == [0, 1, 2, 3]
    assert [run.per_class for run in one.runs] == [run.per_class for run in two.runs]
    assert (one.machine["threads"], one.machine["native"]) == (1, False)


def test_a_repeat_is_the_same_however_many_others_there_are(task: tuple[CondensedSet, Source]) -> None:
    three, one = (accuracies(evaluate(*task, protocol=TINY, net=NET, repeats=repeats)) for repeats in (3, 1))
    assert three[:1] == one
    assert three != accuracies(evaluate(*task, protocol=TINY, net=NET, repeats=3, seed=1))


def test_networks_of_ones_own_are_seeded_too_even_in_parallel(task: tuple[CondensedSet, Source]) -> None:
    """Their constructors and layers such as Dropout draw from PyTorch's one global generator."""

    def with_dropout(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
        features = shape[0] * shape[1] * shape[2]
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(features, classes))

    before = torch.get_rng_state()
    results = [
        accuracies(evaluate(*task, protocol=TINY, net=with_dropout, repeats=6, compute=ComputeConfig(workers=workers)))
        for workers in (1, 3, 3)
    ]
    assert results[0] == results[1] == results[2]
    assert torch.equal(torch.get_rng_state(), before)


def test_accuracy_is_the_share_that_is_right_overall_and_by_class(task: tuple[CondensedSet, Source]) -> None:
    def always_standing(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
        class Stubborn(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.unused = torch.nn.Linear(1, 1)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.tensor([-9.0, 9.0]).expand(len(x), 2) + 0 * self.unused.weight.sum()

        return Stubborn()

    data, source = task
    rows = np.flatnonzero(source.test.labels == 0)[:3]
    some = np.concatenate([rows, np.flatnonzero(source.test.labels == 1)[:9]])
    test = replace(source, splits={"test": ArraySplit(source.test.take(some), source.test.labels[some])})
    result = evaluate(data, test, protocol=TINY, net=always_standing, repeats=1)
    assert result.mean == pytest.approx(9 / 12)
    assert result.per_class == (0.0, 1.0)
    assert result.net == "always_standing"


def test_mean_and_std_are_those_of_a_sample() -> None:
    runs = tuple(
        EvaluationRun(repeat, accuracy, (accuracy, None), 1.0) for repeat, accuracy in enumerate((0.2, 0.3, 0.7))
    )
    result = Result("a", 1, "p", "n", "t", 9, 0, runs, 3.0, {})
    assert result.per_class == (pytest.approx(0.4), None)
    assert result.mean == pytest.approx(0.4)
    assert result.std == pytest.approx(np.std([0.2, 0.3, 0.7], ddof=1))
    assert replace(result, ddof=0).std == pytest.approx(np.std([0.2, 0.3, 0.7]))
    assert np.isnan(replace(result, runs=runs[:1], ddof=0).std)


def test_it_learns_the_task(task: tuple[CondensedSet, Source]) -> None:
    assert evaluate(*task, protocol=replace(TINY, small=replace(SHORT, epochs=40)), net=NET, repeats=2).mean > 0.9


def test_the_authors_report_the_best_of_four_tests_beside_the_last(
    task: tuple[CondensedSet, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    four = replace(TINY, small=replace(SHORT, epochs=8), num_evals=4)
    plain = evaluate(*task, protocol=four, net=NET, repeats=2)
    assert accuracies(plain) == accuracies(evaluate(*task, protocol=replace(four, num_evals=1), net=NET, repeats=2))
    assert plain.best is None
    seen = iter([0.1, 0.9, 0.2, 0.3, 0.1, 0.2, 0.3, 0.5])
    tested = evaluation._Tested
    monkeypatch.setattr(evaluation._Job, "_test", lambda self, trainer: tested(next(seen), (None, None), 0.0))
    compute = ComputeConfig(workers=1)
    both = evaluate(*task, protocol=replace(four, report="best and last"), net=NET, repeats=2, compute=compute)
    assert accuracies(both) == [0.3, 0.5]
    assert [run.best for run in both.runs] == [0.9, 0.5]
    assert (both.mean, both.std) == (pytest.approx(0.4), pytest.approx(0.1))  # of a population
    assert both.best == (pytest.approx(0.7), pytest.approx(0.2))


def test_the_authors_normalise_twice(soft_set: CondensedSet) -> None:
    test = ArraySplit(np.arange(72, dtype=np.uint8).reshape(2, 1, 6, 6), np.array([0, 1]))
    source = Source("grey", soft_set.classes, (0.3,), (0.4,), {"test": test})
    once, twice = (
        evaluation._Job(soft_set, source, replace(TINY, double_normalise=double), NET, 0, ComputeConfig())
        for double in (False, True)
    )
    torch.testing.assert_close(twice.images[:], (once.images[:] - 0.3) / 0.4)
    assert torch.equal(twice.test_images[:], once.test_images[:])


def test_the_authors_do_not_whiten_the_test_images(soft_set: CondensedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def see(*_: object, whiten: bool, data_dir: Path | None) -> tuple[torch.Tensor, torch.Tensor]:
        asked.append(whiten)
        return torch.zeros(1, 1, 6, 6), torch.zeros(1, dtype=torch.int64)

    monkeypatch.setattr(evaluation, "prepare_test_images", see)
    source = Source(
        "grey", ("x",), (0.3,), (0.4,), {"test": ArraySplit(np.zeros((1, 1, 6, 6), np.uint8), np.zeros(1, int))}
    )
    for protocol in (PAPER, AUTHORS):
        evaluation._Job(soft_set, source, protocol, NET, 0, ComputeConfig())
    assert asked == [True, False]


def test_progress_counts_every_epoch_of_every_repeat(task: tuple[CondensedSet, Source]) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(*task, protocol=TINY, net=NET, repeats=3, progress=lambda *now: seen.append(now))
    assert seen == [(done, 12) for done in range(1, 13)]


def test_when_one_repeat_fails_the_others_stop(task: tuple[CondensedSet, Source]) -> None:
    calls = 0

    def fails_later(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if done == 3:
            raise RuntimeError("stop here")

    endless = replace(TINY, small=replace(SHORT, epochs=10_000))
    with pytest.raises(RuntimeError, match="stop here"):
        evaluate(*task, protocol=endless, net=NET, repeats=2, compute=ComputeConfig(workers=2), progress=fails_later)
    assert calls < 1000


def test_the_others_stop_within_an_epoch(task: tuple[CondensedSet, Source]) -> None:
    """One repeat fails in its third step; the epoch of the other has a thousand."""
    data, source = task
    many = data.take(np.arange(4000) % len(data))
    one_epoch = replace(TINY, small=Recipe(epochs=1, batch=4))
    steps: Counter[int] = Counter()

    class Fragile(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            steps[get_ident()] += 1
            if steps[get_ident()] == 3 and get_ident() == min(steps):
                raise RuntimeError("broken")
            return super().forward(x)

    def fragile(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Flatten(), Fragile(shape[0] * shape[1] * shape[2], classes))

    with pytest.raises(RuntimeError, match="broken"):
        evaluate(many, source, protocol=one_epoch, net=fragile, repeats=2, compute=ComputeConfig(workers=2))
    assert max(steps.values()) < 900


def test_the_number_of_threads_is_put_back(task: tuple[CondensedSet, Source]) -> None:
    with threads(2):
        evaluate(*task, protocol=TINY, net=NET, repeats=2)
        assert torch.get_num_threads() == 2


def test_a_training_that_diverges_is_no_accuracy(task: tuple[CondensedSet, Source]) -> None:
    with pytest.raises(BadOption, match="diverged"):
        evaluate(*task, protocol=replace(TINY, small=replace(SHORT, lr=1e30)), net=NET, repeats=1)


def test_bad_requests_are_refused(task: tuple[CondensedSet, Source]) -> None:
    with pytest.raises(BadOption, match="`repeats` of at least 1"):
        evaluate(*task, repeats=0)
    with pytest.raises(UnknownName, match="'quick'"):
        evaluate(*task, protocol="quik")
    with pytest.raises(UnknownName, match="'convnet-d3'"):
        evaluate(*task, protocol=TINY, net="convnet-3")
    for bad in ({"precision": "fp32"}, {"compilation": "yes"}, {"workers": 0}, {"threads": 0}):
        with pytest.raises(BadOption):
            ComputeConfig(**bad)  # type: ignore[arg-type]
    with pytest.raises(BadOption, match="no device 'abacus'"):
        evaluate(*task, protocol=TINY, net=NET, compute=ComputeConfig(device="abacus"))


def test_what_a_set_is_tested_on_can_be_left_to_its_classes(task: tuple[CondensedSet, Source], tmp_path: Path) -> None:
    bundled = load("cifar10-real-ipc10", first=10)
    result = evaluate(bundled, protocol=TINY, net="convnet-d1-w8", repeats=1, data_dir=tmp_path)
    assert (result.test, result.test_images) == ("cifar10-sample", 1000)
    assert result.note == (
        "The test images are the bundled cifar10-sample; download cifar10 to test on its whole test split."
    )
    assert str(result).endswith(" on 1000 images of cifar10-sample (bundled sample)")
    with pytest.raises(BadOption, match="cannot be inferred from its classes; pass a source as `test`"):
        evaluate(task[0], protocol=TINY, net=NET)


def test_set_and_test_images_may_be_paths_or_names(task: tuple[CondensedSet, Source], tmp_path: Path) -> None:
    data, source = task
    save(data, tmp_path / "set.safetensors")
    np.savez(
        tmp_path / "test.npz", x_test=source.test.take(slice(None)), y_test=source.test.labels, classes=source.classes
    )
    expected = evaluate(data, source, protocol=TINY, net=NET, repeats=1)
    by_path = evaluate(tmp_path / "set.safetensors", str(tmp_path / "test.npz"), protocol=TINY, net=NET, repeats=1)
    assert accuracies(by_path) == accuracies(expected)
    assert by_path.note is None
    by_name = evaluate("cifar10-real-ipc10", "cifar10-sample", protocol=TINY, net="convnet-d1-w8", repeats=1)
    assert (by_name.patches, by_name.test_images, by_name.note) == (400, 1000, None)


def test_a_result_prints_what_was_measured_on_which_images(task: tuple[CondensedSet, Source]) -> None:
    result = evaluate(*task, protocol=TINY, net=NET, repeats=2)
    mean, std = (f"{value:.2%}" for value in (result.mean, result.std))
    made = f"n = 2; 16 patches of task, {NET}, {TINY.id}"
    assert str(result) == repr(result) == f"{mean} ± {std} ({made}) on 24 images of stripes"
    assert str(replace(result, runs=result.runs[:1])).startswith(f"{result.runs[0].accuracy:.2%} (n = 1; ")


def test_a_run_keeps_its_loss_on_the_patches_and_on_the_test_images(task: tuple[CondensedSet, Source]) -> None:
    data, other = task
    same = Source("same", data.classes, (0.5,) * 3, (0.25,) * 3, {"test": ArraySplit(data.cells, data.labels)})
    on_patches, on_others = (evaluate(data, test, protocol=TINY, net=NET, repeats=2) for test in (same, other))
    assert on_patches.train_loss == pytest.approx(on_patches.test_loss, rel=1e-5)
    assert on_others.train_loss == on_patches.train_loss
    assert on_others.test_loss != on_others.train_loss
    one, two = on_others.runs
    assert one.test_loss != two.test_loss
