"""What must not move: the numbers that a seed gives, from condensing to the written file.

The values are kept in `values.npz`. Sampled numbers, selected rows, ids and file bytes must be equal; what a network computes
may differ in its last digits from processor to processor. `python tests/golden/test_golden.py FILE` writes the values of this
checkout to a file, to compare two commits bit by bit on one machine.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from condense_once import (
    Budget,
    CondensedSet,
    MetricConfig,
    Source,
    Space,
    condense,
    evaluate,
    load,
    rank,
    resize,
    save,
    score,
)
from condense_once.augment import Augmentation, CutMix, SingleAugmentation
from condense_once.augment.imagenet import ImageNetAugmentation
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.data.catalogue import CIFAR10
from condense_once.data.source import ArraySplit
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.metrics import Epochs
from condense_once.selection.rule import Rule
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.jobs import scoring_job
from condense_once.studies.study import Study
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator

Array = NDArray[Any]
VALUES = Path(__file__).with_name("values.npz")
NET = "convnet-d2-w8"
METHODS = ("idc", "dream", "dc", "dsa", "dm")
PLAIN = ComputeConfig(precision="float32", compilation="off")  # bfloat16, where a processor has it, rounds too coarsely
RULES = (
    *("yoco", "lbpe-hard", "random", "random-balanced", "el2n", "el2n-auto-balanced", "aum-easy", "entropy-balanced"),
    *("ccs", "ccs-fixed", "ccs-balanced", "ssp", "ssp-balanced", "ssp-hard"),
)
# Clusters and greedy choices by features that a network computes: their last digits decide which of two near equals is chosen,
# and with it everything after that. tests/metrics holds them against naive versions instead.
UNSTABLE = ("ssp", "lbpe-mmr")
BUDGETS: dict[str, dict[str, Any]] = {
    "ipc": {"ipc": 1},
    "total": {"total": 57},
    "fraction": {"fraction": "12.7%"},
    "bytes": {"bytes": "64KiB"},
    "classes": {"ipc": 2, "classes": ["cat", "dog"], "renumber": True},
    "per_class": {"per_class": {"cat": 3, "ship": 1}},
}


def patterns(each: int, split: str, seed: int) -> Source:
    """Three classes of small images that can be told apart."""
    rng = np.random.default_rng(0)
    shapes = rng.integers(0, 156, (3, 3, 8, 8))
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(3), each))
    images = (shapes[labels] + rng.integers(0, 100, (len(labels), 3, 8, 8))).astype(np.uint8)
    return Source("patterns", ("ant", "bee", "cat"), (0.5,) * 3, (0.25,) * 3, {split: ArraySplit(images, labels)})  # type: ignore[dict-item]


def small_set() -> CondensedSet:
    rng = np.random.default_rng(3)
    return CondensedSet.from_mosaics(
        rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8),
        np.repeat(np.arange(3), 4),
        factor=2,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        classes=("ant", "bee", "cat"),
        name="small",
        provenance={"method": "idc"},
    )


def quick(method: str) -> dict[str, Any]:
    overrides: dict[str, Any] = {"iterations": 2, "steps": 3, "real_batch": 6, "net_batch": 8}
    if method in ("idc", "dream"):
        overrides |= {"net_images": 16, "image_lr": 0.05, "pretrain_epochs": 1, "net_short_batch": False}
    if method in ("dc", "dsa"):
        overrides["net_epochs"] = 2
    if method in ("dsa", "dm"):
        overrides["init"] = "first"
    if method == "dream":
        overrides |= {"reselect_every": 2, "pool": 15}
    return overrides


def condensed(method: str, net: str = NET, **others: Any) -> Array:
    compute = others.pop("compute", PLAIN)
    made = condense(
        patterns(20, "train", 1),
        ipc=2,
        factor=2,
        method=method,
        net=net,
        overrides=quick(method),
        compute=compute,
        **others,
    )
    return made.cells.astype(np.float32) / (255 if made.cells.dtype == np.uint8 else 1)


class Interrupted(Exception):
    pass


class Interrupt(Callback):
    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= 5:
            raise Interrupted


def resumed(method: str) -> Array:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        with pytest.raises(Interrupted):
            condensed(method, checkpoint=path, save_every=0.0, callbacks=[Interrupt()])
        return condensed(method, checkpoint=path, resume=True)


def scores() -> dict[str, Array]:
    window = Epochs.top(2, among=4)
    config = MetricConfig(scoring_epochs=6, lbpe_epochs=window, el2n_epochs=3, subset_runs=3, subset_epochs=3)
    made = score(small_set(), seed=5, net=NET, config=config, compute=PLAIN)
    found = dict(made.scores)
    found |= score(small_set(), ["memorization"], runs=2, seed=5, net=NET, config=config, compute=PLAIN).scores
    return {f"score/{name}": values for name, values in found.items() if name not in UNSTABLE}


def ranked() -> dict[str, Array]:
    """By scores that are there, so that the order does not hang on the processor."""
    data = load("cifar10-idc-ipc10")
    found = {"rank/yoco": rank(data).origin}
    found["rank/random"] = rank(data, "random", balanced=False, seed=4).origin
    for name, budget in BUDGETS.items():
        kept = resize(data, Budget(**budget))
        found[f"resize/{name}"] = np.stack([kept.origin, kept.labels])
    return found


def selected() -> dict[str, Array]:
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 4, 200)
    columns = {
        metric: rng.random(200).astype(np.float32) for metric in ("lbpe", "el2n", "aum", "entropy", "ssp", "random")
    }
    features = rng.random((200, 5)).astype(np.float32)
    data = CondensedSet(
        cells=np.zeros((200, 3, 2, 2), np.uint8),
        labels=labels,
        classes=CIFAR10.classes,
        size=(4, 4),
        factor=2,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        origin=rng.permutation(200),
        scores=columns,
    )
    return {
        f"select/{rule}/{count}": Rule.parse(rule).rows(data, count, features=features, seed=2)
        for rule in RULES
        for count in (16, 51, 150)
    }


def evaluated() -> dict[str, Array]:
    protocol = Protocol("golden", "a few epochs", Recipe(epochs=12), Recipe(epochs=12))
    compute = replace(PLAIN, workers=1)
    train = patterns(8, "train", 1).train
    data = CondensedSet.from_mosaics(
        train.take(slice(None)), np.asarray(train.labels), factor=1, space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        classes=("ant", "bee", "cat"),
    )  # fmt: skip
    result = evaluate(data, patterns(300, "test", 2), protocol=protocol, net=NET, repeats=2, seed=3, compute=compute)
    return {"evaluate": np.array([[run.accuracy, *run.per_class] for run in result.runs], np.float32)}


def sampled() -> dict[str, Array]:
    found: dict[str, Array] = {}

    def keep(name: str, params: Any) -> None:
        for field, value in params._asdict().items():
            if value is not None:
                found[f"augment/{name}/{field}"] = np.asarray(value)

    strategy = "color_crop_cutout_flip_scale_rotate"
    for seed in range(3):
        keep(f"all/{seed}", Augmentation.parse(strategy).sample(4, (32, 32), generator(seed, "golden")))
        keep(
            f"shared/{seed}", Augmentation.parse("color_crop_cutout").sample_shared((32, 32), generator(seed, "golden"))
        )
        keep(f"single/{seed}", SingleAugmentation.parse(strategy).sample(4, (32, 32), generator(seed, "golden")))
        keep(f"imagenet/{seed}", ImageNetAugmentation((64, 64)).sample(4, (64, 64), generator(seed, "golden")))
        keep(f"cutmix/{seed}", CutMix(0.5).sample(8, (32, 32), generator(seed, "golden")))
    return found


def written() -> dict[str, Array]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "set.safetensors"
        save(small_set(), path)
        return {"file/sha256": np.array(hashlib.sha256(path.read_bytes()).hexdigest())}


def identities() -> dict[str, Array]:
    found = {
        f"protocol/{protocol.name}": np.array(protocol.id) for protocol in PROTOCOLS if not protocol.name.count("test")
    }
    study = Study(
        "golden", "keys", rules=("yoco", "ccs", "random", "el2n"), sizes=("1", "50%"), repeats=2, precision="float32"
    )
    inputs = {study.sets[0]: StudyInput(load(study.sets[0]), patterns(4, "test", 1))}
    cells = list(cells_of(study, inputs))
    found["keys/cells"] = np.array([cell.key for cell in cells])
    found["keys/scoring runs"] = np.array([job.key for cell in cells if (job := scoring_job(cell)) is not None])
    found["keys/evaluations"] = np.array(
        [
            hashlib.sha256(repr(sorted(cell.evaluation_facts(np.arange(cell.patches)).items())).encode()).hexdigest()
            for cell in cells
        ]
    )
    return found


GROUPS: dict[str, Callable[[], dict[str, Array]]] = {
    **{f"condense-{method}": (lambda method=method: {f"condense/{method}": condensed(method)}) for method in METHODS},  # type: ignore[misc]
    "condense-batch-norm": lambda: {"condense/dc batch norm": condensed("dc", f"{NET}-bn")},
    "scores": scores,
    "ranked": ranked,
    "selected": selected,
    "evaluated": evaluated,
    "sampled": sampled,
    "written": written,
    "identities": identities,
}
# What networks compute, and how far another processor may take it.
CLOSE = {"condense/": 0.02, "score/": 0.02, "evaluate": 0.03}


@pytest.mark.parametrize("group", GROUPS)
def test_the_same_seed_gives_the_same_numbers_as_ever(group: str) -> None:
    torch.set_num_threads(1)
    with np.load(VALUES) as archive:
        for name, found in GROUPS[group]().items():
            expected = archive[name.replace("/", "|")]
            tolerance = next((value for prefix, value in CLOSE.items() if name.startswith(prefix)), None)
            if tolerance is not None:
                np.testing.assert_allclose(found, expected, atol=tolerance, err_msg=name)
            elif found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_gives_them_too(method: str) -> None:
    torch.set_num_threads(1)
    with np.load(VALUES) as archive:
        np.testing.assert_allclose(resumed(method), archive[f"condense|{method}"], atol=CLOSE["condense/"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    values = {name.replace("/", "|"): value for group in GROUPS.values() for name, value in group().items()}
    np.savez_compressed(sys.argv[1], **values)
