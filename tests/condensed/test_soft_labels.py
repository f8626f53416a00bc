from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from tests.condensed.test_file import rewrite_header

from condense_once.condensed.bundled import load
from condense_once.condensed.exporters import export_set
from condense_once.condensed.file import SetFile, header_of, save, saved_size
from condense_once.condensed.importers import import_set
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.soft_labels import LabelKind, check_label_use, infer_kind, targets_of
from condense_once.condensed.space import Space
from condense_once.condensed.stored_dtype import with_label_coding
from condense_once.condensed.subset import resize
from condense_once.condensed.verify import verify
from condense_once.device import open_set
from condense_once.errors import BadFile, BadOption

CODINGS = ("float32", "float16", "uint8", "top3")
Floats = NDArray[np.float32]


def probabilities(count: int, classes: int) -> Floats:
    powers = np.exp(2 * np.random.default_rng(1).normal(size=(count, classes)))
    return (powers / powers.sum(1, keepdims=True)).astype(np.float32)


def ranked(soft: Floats, *, coding: str = "float32") -> CondensedSet:
    """A ranked set with these labels; its order is that of the rows."""
    rng, count = np.random.default_rng(0), len(soft)
    made = CondensedSet(
        rng.integers(0, 256, (count, 1, 4, 4), dtype=np.uint8), soft.argmax(1), tuple(map(str, range(soft.shape[1]))),
        (4, 4), 1, Space("pixels", (0.5,), (0.2,)), np.arange(count), soft, ranking=Ranking("lbpe", balanced=False),
    )  # fmt: skip
    return made if coding == "float32" else with_label_coding(made, coding)


labels = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, min_side=4, max_side=9), elements=st.one_of(
    st.floats(-60, 80, width=32), st.floats(0, 1, width=32), st.floats(-59_000, 59_000, width=32),
))  # fmt: skip


@pytest.mark.parametrize("coding", CODINGS)
@given(soft=labels)
def test_rounded_labels_are_rounded_no_further(coding: str, soft: Floats) -> None:
    known = LabelCoding.parse(coding)
    once = known.rounded(soft)
    np.testing.assert_array_equal(known.rounded(once), once)
    np.testing.assert_array_equal(known.rounded(once[1:, :4]), once[1:, :4])  # nor in a part of the set


@given(soft=labels)
def test_8_bits_are_within_a_128th_of_the_range_of_a_row(soft: Floats) -> None:
    error = np.abs(LabelCoding("uint8").rounded(soft) - soft)
    span = soft.max(1) - soft.min(1)
    offset = np.abs(soft.min(1)) / 1000  # a row far from zero has coarser steps
    assert (error.max(1) <= span / 127 + offset + 2.0**-24).all()


def test_the_largest_entries_keep_their_classes_and_the_sum() -> None:
    soft = np.float32([[0.1, 0.05, 0.5, 0.05, 0.3]])
    kept = LabelCoding.parse("top2").rounded(soft)
    np.testing.assert_allclose(kept, [[0.2 / 3, 0.2 / 3, 0.5, 0.2 / 3, 0.3]], atol=1e-3)
    assert abs(float(kept.sum()) - 1) < 1e-3


@pytest.mark.parametrize(("coding", "size"), [("float32", 80), ("float16", 40), ("uint8", 24), ("top3", 14)])
def test_a_file_holds_labels_in_their_coding(coding: str, size: int, tmp_path: Path) -> None:
    data = ranked(probabilities(12, 20), coding=coding)
    save(data, tmp_path / "a.safetensors")
    file = SetFile.open(tmp_path / "a.safetensors")
    found = file.read()
    np.testing.assert_array_equal(found.soft_labels, data.soft_labels)
    assert (found.label_kind, found.label_coding) == ("probabilities", coding)
    stored = [spec for name, spec in file.tensors.items() if name.startswith("soft_labels")]
    assert (
        sum(spec.stop - spec.start for spec in stored)
        == 12 * size
        == 12 * LabelCoding.parse(coding).bytes_per_label(20)
    )
    assert saved_size(header_of(data)) == file.file.size
    assert file.header.version == (1 if coding == "float32" else 2)
    assert not [finding for finding in verify(tmp_path / "a.safetensors") if finding.level == "error"]


def test_a_set_without_soft_labels_says_nothing_of_them(pixel_set: CondensedSet, tmp_path: Path) -> None:
    save(pixel_set, tmp_path / "a.safetensors")
    header = SetFile.open(tmp_path / "a.safetensors").header.to_json()
    assert header["version"] == 1
    assert not {"label_kind", "label_coding"} & set(header)


def test_a_file_from_before_kinds_were_recorded_is_read(soft_set: CondensedSet, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save(soft_set, path)
    rewrite_header(path, lambda header: header.pop("label_kind"))
    before = load(path)
    np.testing.assert_array_equal(before.soft_labels, soft_set.soft_labels)
    assert (before.label_kind, before.label_coding) == ("regression", "float32")  # found out from the values


@pytest.mark.parametrize("coding", CODINGS)
def test_devices_and_resize_hand_out_the_same_labels(coding: str, tmp_path: Path) -> None:
    data = ranked(probabilities(12, 6), coding=coding)
    save(data, tmp_path / "a.safetensors")
    taken = open_set(tmp_path / "a.safetensors").take(total=5)
    np.testing.assert_array_equal(taken.soft_labels, resize(data, total=5).soft_labels)
    assert data.soft_labels is not None
    assert taken.label_kind == "probabilities"
    np.testing.assert_array_equal(taken.soft_labels, data.soft_labels[:5])


def test_resize_stores_labels_in_fewer_bits_and_counts_their_bytes(tmp_path: Path) -> None:
    data = ranked(probabilities(60, 50))
    save(data, tmp_path / "a.safetensors")
    small = resize(tmp_path / "a.safetensors", bytes=8000, label_coding="top5")
    save(small, tmp_path / "small.safetensors")
    assert (tmp_path / "small.safetensors").stat().st_size <= 8000
    assert len(small) > len(resize(tmp_path / "a.safetensors", bytes=8000))
    assert load(tmp_path / "small.safetensors").label_coding == "top5"
    with pytest.raises(BadOption, match="no soft labels"):
        resize("cifar10-idc-ipc10", ipc=1, label_coding="uint8")
    with pytest.raises(BadOption, match="top8"):
        resize(data, total=2, label_coding="bits4")


def test_probabilities_of_fewer_classes_sum_to_one() -> None:
    data = ranked(probabilities(30, 6), coding="top4")
    names = [data.classes[k] for k in np.unique(data.labels)][:3]
    part = resize(data, classes=names, renumber=True)
    assert part.soft_labels is not None
    assert part.label_coding == "float16"
    np.testing.assert_allclose(part.soft_labels.sum(1), 1, atol=2e-3)
    assert not [finding for finding in verify(part) if finding.level == "error"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda soft: soft * 2, "Soft labels should be probabilities, but their rows do not sum to one."),
        (lambda soft: np.full_like(soft, 1 / 6), "The soft labels of 8 patches do not prefer any class."),
    ],
)
def test_verify_checks_soft_labels(change: object, sentence: str) -> None:
    data = ranked(probabilities(8, 6))
    changed = replace(data, soft_labels=change(data.soft_labels), label_kind="probabilities")  # type: ignore[operator]
    assert sentence in [finding.text for finding in verify(changed)]


def test_forged_classes_of_the_largest_entries_are_refused() -> None:
    tensors = LabelCoding.parse("top2").encode(probabilities(3, 5))
    with pytest.raises(BadFile, match="class 9"):
        LabelCoding.parse("top2").decode({**tensors, "soft_labels/classes": np.full((3, 2), 9, np.uint16)}, 5)


def test_labels_beyond_16_bits_are_refused_with_advice() -> None:
    with pytest.raises(BadOption, match="`label_coding` float32"):
        LabelCoding("float16").rounded(np.float32([[1e6, 0]]))


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_exported_sets_come_back_with_their_kind_of_labels(suffix: str, tmp_path: Path) -> None:
    data = replace(ranked(probabilities(8, 3)), label_kind="logits")
    notes = export_set(data, tmp_path / f"a.{suffix}")
    again = import_set(tmp_path / f"a.{suffix}")
    assert again.label_kind == "logits"
    assert data.soft_labels is not None
    order = np.arange(8) if suffix == "npz" else np.argsort(data.labels, kind="stable")
    np.testing.assert_array_equal(again.soft_labels, data.soft_labels[order])
    assert not any("soft labels" in note for note in notes)
    assert any("soft labels" in note for note in export_set(data, tmp_path / "folder", "folder"))


def test_targets_are_what_a_loss_needs() -> None:
    soft = probabilities(8, 3)
    data = ranked(soft)
    assert infer_kind(soft) == "probabilities"
    by_kind = {kind: targets_of(replace(data, label_kind=kind)) for kind in ("probabilities", "logits", "regression")}
    losses = {kind: targets.loss for kind, targets in by_kind.items() if targets is not None}
    assert losses == {"probabilities": "cross_entropy", "logits": "cross_entropy", "regression": "mse"}
    given, logits, regression = (targets.values for targets in by_kind.values() if targets is not None)
    np.testing.assert_allclose(given, soft, atol=1e-6)
    np.testing.assert_allclose(logits, np.exp(soft) / np.exp(soft).sum(1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(np.square(regression).mean(), 1, atol=1e-5)
    np.testing.assert_array_equal(regression.argmax(1), data.labels)
    assert targets_of(replace(data, soft_labels=None)) is None


@pytest.mark.parametrize(("kind", "usual"), [("probabilities", "soft"), ("logits", "soft"), ("regression", "hard")])
def test_vectors_to_regress_on_are_trained_on_only_if_asked_for(kind: LabelKind, usual: str) -> None:
    data = replace(ranked(probabilities(8, 3)), label_kind=kind)
    assert check_label_use(None, data) == usual
    assert [check_label_use(use, data) for use in ("soft", "hard")] == ["soft", "hard"]
