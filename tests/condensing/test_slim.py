from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensed.subset import resize
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.slim import experts_beside, patches_as_source, slim, starting_set
from condense_once.errors import BadOption
from condense_once.selection.rank import rank_by_scores
from condense_once.train.compute_config import ComputeConfig

QUICK = {
    "tgdd": {"iterations": 8, "expert_epochs": 2, "expert_every": 1},
    "idc": {"iterations": 2, "steps": 3, "net_images": 16, "net_batch": 8, "image_lr": 0.05},
}


def ranked(rng: np.random.Generator, *, kind: str = "pixels", factor: int = 2, **space: Any) -> CondensedSet:
    """Three classes of four images whose patches differ by class, ranked by random scores."""
    labels = np.repeat(np.arange(3), 4)
    pixels = (40 * labels[:, None, None, None] + rng.integers(0, 100, (12, 3, 8, 8))).astype(np.uint8)
    values = pixels if kind == "pixels" else (pixels / 255 * 12 - 5).astype(np.float32)
    made = CondensedSet.from_mosaics(
        values,
        labels,
        factor=factor,
        space=Space(kind, (0.5,) * 3, (0.25,) * 3, **space),  # type: ignore[arg-type]
        classes=("ant", "bee", "cat"),
        name="whole",
    )
    return rank_by_scores(replace(made, scores={"lbpe": rng.random(len(made)).astype(np.float32)}), "lbpe")


def run(whole: CondensedSet, **others: Any) -> CondensedSet:
    method = others.setdefault("method", "tgdd")
    overrides = {**QUICK[method], **others.pop("overrides", {})}
    given = {"ipc": 2, "minutes": 1.0, "net": "convnet-d1-w8", "compute": ComputeConfig(compilation="off"), **others}
    return slim(whole, overrides=overrides, **given)


def test_it_starts_from_the_patches_that_resizing_keeps_the_best_in_the_first_image(rng: np.random.Generator) -> None:
    whole = ranked(rng)
    first = starting_set(whole, 2)
    mosaics, labels = first.mosaics()
    best = resize(whole, ipc=2)
    for label in range(3):
        cells = best.cells[best.labels == label]  # best first
        for rank, cell in enumerate(cells):
            image, place = divmod(rank, 4)
            top, left = 4 * (place // 2), 4 * (place % 2)
            stored = mosaics[labels == label][image][:, top : top + 4, left : left + 4]
            assert np.array_equal(stored, cell)


@pytest.mark.parametrize("kind", ["pixels", "normalised"])
def test_the_whole_set_takes_the_place_of_the_real_images(rng: np.random.Generator, kind: str) -> None:
    whole = ranked(rng, kind=kind)
    source = patches_as_source(whole)
    assert np.array_equal(source.train.labels, whole.labels)
    pixels = source.train.take(np.array([5, 1])) / 255
    assert np.abs((pixels - 0.5) / 0.25 - whole.inputs()[[5, 1]]).max() < 1e-4  # neither rounded nor clipped


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("method", QUICK)
def test_a_slimmed_set_is_in_the_space_of_the_whole_and_says_what_it_is(
    rng: np.random.Generator, factor: int, method: str
) -> None:
    whole = ranked(rng, factor=factor)
    made = run(whole, method=method)
    assert made.counts().tolist() == [2 * factor**2] * 3
    assert (made.space, made.factor, made.classes) == (whole.space, whole.factor, whole.classes)
    assert made.cells.dtype == np.uint8
    assert made.name == "whole-slim-ipc2"
    assert made.provenance["slimmed"] == {"from": "whole", "patches": len(whole), "rule": "lbpe, easy first"}
    assert not np.array_equal(np.sort(made.cells, 0), np.sort(starting_set(whole, 2).cells, 0))
    assert made.ranking is None


@pytest.mark.parametrize(
    ("kind", "space"),
    [("normalised", {}), ("zca", {"zca": {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}})],
)
@pytest.mark.parametrize("method", QUICK)
def test_sets_that_have_no_pixels_keep_their_space(
    rng: np.random.Generator, kind: str, space: dict[str, Any], method: str
) -> None:
    whole = ranked(rng, kind=kind, factor=1, **space)
    made = run(whole, method=method)
    assert made.space == whole.space
    assert made.cells.dtype == np.float32
    assert made.cells.min() < -1  # not clamped


def test_a_nested_slimmed_set_serves_every_smaller_size(rng: np.random.Generator) -> None:
    made = run(ranked(rng), nested=True)
    assert made.ranking == Ranking("nested", settings={"sizes": [1, 2]})
    assert resize(made, ipc=1).counts().tolist() == [4, 4, 4]


def test_an_interrupted_run_resumes_to_the_same_bits_also_after_its_end(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    class SwitchOff(Callback):
        def on_checkpoint(self, progress: RunProgress) -> None:
            if progress.done >= 6:
                raise RuntimeError("off")

    whole, path = ranked(rng), tmp_path / "run.checkpoint"
    expected = run(whole)
    with pytest.raises(RuntimeError, match="off"):
        run(whole, checkpoint=path, save_every=0.0, callbacks=[SwitchOff()])
    resumed = run(whole, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, expected.cells)
    again = run(whole, checkpoint=path, resume=True)  # a process may be killed before it has saved the result
    assert np.array_equal(again.cells, expected.cells)
    assert sorted(tmp_path.iterdir()) == [path, experts_beside(path)]


def test_too_many_images_and_unranked_sets_are_refused(rng: np.random.Generator) -> None:
    whole = ranked(rng)
    with pytest.raises(BadOption, match="ipc"):
        run(whole, ipc=9)
    with pytest.raises(BadOption, match="rank"):
        run(replace(whole, ranking=None))
    with pytest.raises(BadOption, match="idc, not 'dm'"):
        slim(whole, ipc=1, method="dm")  # type: ignore[arg-type]
