"""Layouts in which other projects publish their sets, built small."""

from __future__ import annotations

import tracemalloc
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from condense_once.condensed.importers import ImportOptions, import_set
from condense_once.condensed.set import CondensedSet
from condense_once.data.catalogue import CIFAR10
from condense_once.data.zca import fit_zca
from condense_once.errors import BadFile, BadOption

STATED = ImportOptions(factor=1, space="normalised", dataset="cifar10")


@pytest.fixture
def images(rng: np.random.Generator) -> NDArray[np.float32]:
    return rng.normal(size=(10, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def soft(rng: np.random.Generator) -> NDArray[np.float32]:
    """A learned vector for each image, whose largest entry is its class."""
    return np.eye(10, dtype=np.float32) + rng.normal(scale=0.05, size=(10, 10)).astype(np.float32)


def saved(path: Path, value: object) -> Path:
    torch.save(value, path)
    return path


def tensor(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(array)


def holds(made: CondensedSet, images: NDArray[Any], labels: NDArray[Any]) -> bool:
    order = np.argsort(labels, kind="stable")
    return np.array_equal(made.cells, images[order]) and np.array_equal(made.labels, labels[order])


def test_soft_labels_beside_images_with_channels_first(
    images: NDArray[np.float32], soft: NDArray[np.float32], tmp_path: Path
) -> None:
    np.savez(tmp_path / "best.npz", images=images, labels=soft, jit=np.array(5e-3), k=np.array(3))  # RFAD
    datm = [saved(tmp_path / "labels_best.pt", tensor(soft)), saved(tmp_path / "images_best.pt", tensor(images))]
    pair = saved(tmp_path / "pair.pt", [tensor(images), tensor(soft)])
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", soft)
    for files, name in (
        ([tmp_path / "best.npz"], "arrays"),
        (datm, "mtt"),
        ([pair], "arrays"),
        ([tmp_path / "x.npy", tmp_path / "y.npy"], "arrays"),
    ):
        made = import_set(files, STATED if name == "arrays" else ImportOptions(space="normalised", dataset="cifar10"))
        assert made.provenance["imported"]["format"] == name
        assert holds(made, images, soft.argmax(1))
        np.testing.assert_array_equal(made.soft_labels, soft[np.argsort(soft.argmax(1))])


def test_soft_labels_of_other_classes_are_refused(
    images: NDArray[np.float32], soft: NDArray[np.float32], tmp_path: Path
) -> None:
    np.savez(tmp_path / "best.npz", images=images, labels=soft[:, :7])
    with pytest.raises(BadFile, match=r"must be \[10, 10\], one number per image and class, not \[10, 7\]"):
        import_set(tmp_path / "best.npz", STATED)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_one_hot_rows_and_columns_of_numbers_are_class_numbers(
    images: NDArray[np.float32], tmp_path: Path, kind: type[Any]
) -> None:
    numbers = np.arange(10)[::-1].copy()
    for labels in (np.eye(10, dtype=kind)[numbers], numbers[:, None].astype(kind)):
        np.savez(tmp_path / "x.npz", images=images, labels=labels)
        made = import_set(tmp_path / "x.npz", STATED)
        assert made.soft_labels is None
        assert holds(made, images, numbers)


def test_experiments_whose_labels_are_floating_point(images: NDArray[np.float32], tmp_path: Path) -> None:
    path = saved(tmp_path / "res.pt", {"data": [[tensor(images), torch.arange(10.0)]], "accs": {}})  # DataDAM
    assert holds(import_set(path, ImportOptions(dataset="cifar10")), images, np.arange(10))


def test_dicts_and_lists_in_a_pytorch_file(images: NDArray[np.float32], tmp_path: Path) -> None:
    x, y = tensor(images), torch.arange(10)
    for value in (
        {"images": x, "labels": y, "epoch": 3},
        {"images": list(x), "labels": y.tolist()},
        [list(x), y.tolist()],
        [x, y.tolist()],
        [(one, int(label)) for one, label in zip(x, y, strict=True)],
        [(one, label) for one, label in zip(x, y, strict=True)],
        {"images": images, "labels": np.arange(10)},
    ):
        assert holds(import_set(saved(tmp_path / "x.pt", value), STATED), images, np.arange(10)), type(value)


def test_a_pair_that_only_looks_like_idcs_is_imported_by_naming_its_format(
    images: NDArray[np.float32], tmp_path: Path
) -> None:
    path = saved(tmp_path / "x.pt", [tensor(images), torch.arange(10)])
    with pytest.raises(
        BadOption, match=r"has space pixels, not normalised; .* pass `format_name` arrays if it is not of idc"
    ):
        import_set(path, STATED)
    with pytest.raises(BadFile, match=r"not pixels in 0…1; .* pass `format_name` arrays if it is not of idc"):
        import_set(path, replace(STATED, space=None))
    assert holds(import_set(path, STATED, format_name="arrays"), images, np.arange(10))


def test_arrays_under_other_names(images: NDArray[np.float32], tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x_syn=images, y_syn=np.arange(10), lr=np.array(0.1))
    path = saved(tmp_path / "x.pt", {"x_syn": tensor(images), "y_syn": torch.arange(10), "lr": 0.1})
    for file in (tmp_path / "x.npz", path):
        with pytest.raises(BadOption) as refusal:
            import_set(file, STATED)
        assert "x_syn (float32 [10, 3, 8, 8]), y_syn (int64 [10]) and lr (float" in str(refusal.value)
        assert "; pass `images` and `labels`, the names of its images and labels." in str(refusal.value)
        named = ImportOptions(factor=1, space="normalised", dataset="cifar10", images="x_syn", labels="y_syn")
        assert holds(import_set(file, named), images, np.arange(10))
        with pytest.raises(BadOption, match="but no 'z'; pass another `images`"):
            import_set(file, ImportOptions(factor=1, images="z", labels="y_syn"))


def test_everything_that_is_missing_is_asked_at_once(images: NDArray[np.float32], tmp_path: Path) -> None:
    pair = [tensor(images), torch.arange(10)]
    with pytest.raises(BadOption, match=r"2 experiments and lacks .*; pass `experiment` 0 to 1, `dataset` \(or `mean`"):
        import_set(saved(tmp_path / "res.pt", {"data": [pair, pair]}))
    Image.new("RGB", (342, 342)).save(tmp_path / "grid.png")
    with pytest.raises(BadOption, match=r"pass `tile` \(32 .*\), `factor` \(1 .*\), `dataset`"):
        import_set(tmp_path / "grid.png")
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(10))
    with pytest.raises(BadOption, match=r"pass `images` and `labels`, `space` \(pix.*\), `factor` \(1 .*\), `dataset`"):
        import_set(tmp_path / "x.npz")
    files = [saved(tmp_path / "i.pt", pair[0]), saved(tmp_path / "l.pt", pair[1])]
    with pytest.raises(BadOption, match=r"pass `zca_method` \(kip, kornia or rfad\), `dataset`"):
        import_set(files, ImportOptions(space="zca"))


def test_a_grey_grid_saved_as_rgb(rng: np.random.Generator, tmp_path: Path) -> None:
    grey = rng.integers(0, 256, (2 * 28, 3 * 28), dtype=np.uint8)
    Image.fromarray(grey).convert("RGB").save(tmp_path / "grid.png")
    options = ImportOptions(tile=28, border=0, factor=1, dataset="fashion-mnist")
    made = import_set(tmp_path / "grid.png", options)
    assert made.shape == (1, 28, 28)
    np.testing.assert_array_equal(made.cells[0, 0], grey[:28, :28])
    assert "Three equal channels are stored as one." in made.provenance["imported"]["notes"]
    colour = np.stack([grey, grey, 255 - grey], 2)
    Image.fromarray(colour).save(tmp_path / "grid.png")
    with pytest.raises(BadOption, match="three different channels"):
        import_set(tmp_path / "grid.png", options)


def test_an_enlarged_grid_is_shrunk(rng: np.random.Generator, tmp_path: Path) -> None:
    tiles = rng.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    picture = np.zeros((2 * 34 + 2, 34 + 2, 3), np.uint8)
    for row, tile in enumerate(tiles):
        picture[2 + 34 * row : 34 + 34 * row, 2:34] = tile.repeat(4, 0).repeat(4, 1)
    Image.fromarray(picture).save(tmp_path / "grid.png")
    options = {"tile": 32, "factor": 1, "mean": (0.5,) * 3, "std": (0.2,) * 3}
    made = import_set(tmp_path / "grid.png", ImportOptions(shrink=4, **options))  # type: ignore[arg-type]
    np.testing.assert_array_equal(made.cells, tiles.transpose(0, 3, 1, 2))
    assert not any("differ by" in note for note in made.provenance["imported"]["notes"])
    coarse = import_set(tmp_path / "grid.png", ImportOptions(shrink=8, **options))  # type: ignore[arg-type]
    assert any("8×8 block differ by" in note for note in coarse.provenance["imported"]["notes"])
    with pytest.raises(BadOption, match="`shrink` a divisor of `tile`"):
        import_set(tmp_path / "grid.png", ImportOptions(shrink=5, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"adj": torch.zeros(5, 5), "feat": torch.zeros(5, 7)}, r"with adj \(float32 \[5, 5\]\) and feat \(float32"),
        (torch.nn.Linear(2, 3).state_dict(), r"with weight \(float32 \[3, 2\]\) and bias \(float32 \[3\]\)"),
        ({"epoch": 3, "model": {"weight": torch.zeros(2)}}, r"with epoch \(int\) and model \(a dict\)"),
        (["a", "text"], "with a list of str and str"),
        (torch.zeros(4, 7), r"with float32 \[4, 7\]"),
        ({str(key): key for key in range(99)}, r"7 \(int\) and 91 more"),
        ([[0, 1], [1, 0]], "a list of a list and a list"),
        ({}, "with nothing"),
    ],
)
def test_what_is_no_set_of_images_is_described(tmp_path: Path, value: object, complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint) as refusal:
        import_set(saved(tmp_path / "x.pt", value), STATED)
    assert "weights_only" not in str(refusal.value)


def test_a_network_whose_weights_look_like_images_is_described(tmp_path: Path) -> None:
    with pytest.raises(
        BadOption, match=r"holds weight \(float32 \[8, 3, 5, 5\]\) and bias \(float32 \[8\]\); pass `images`"
    ):
        import_set(saved(tmp_path / "x.pt", torch.nn.Conv2d(3, 8, 5).state_dict()), STATED)


def test_a_small_npz_does_not_become_gigabytes(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("images.npy", "w") as member,
    ):
        for _ in range(300):
            member.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(BadFile, match=r"would unpack from 1\.3 MiB to 300\.0 MiB"):
        import_set(tmp_path / "x.npz", STATED)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["", ".npy", "images.npy.npy", "a\nb", "scores/", "\x1b[31m", "images/", "x" * 3000])
def test_odd_names_in_an_npz_do_no_harm(images: NDArray[np.float32], tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for key, array in (("images", images), ("labels", np.arange(10)), ("origin", np.arange(10)), (name, images)):
            with archive.open(key if key == name else f"{key}.npy", "w") as member:
                np.lib.format.write_array(member, array)
    with suppress(BadFile):
        assert len(import_set(tmp_path / "x.npz", STATED)) == 10


def test_rfad_whitens_images_as_they_are(rng: np.random.Generator, images: NDArray[np.float32], tmp_path: Path) -> None:
    np.savez(tmp_path / "best.npz", images=images, labels=np.eye(10) - 0.1)
    options = ImportOptions(factor=1, space="zca", zca_method="rfad", dataset="cifar10")
    made = import_set(tmp_path / "best.npz", options)
    assert made.space.zca == {"recipe": "rfad", "regularisation": 0.1, "source": "cifar10"}
    assert made.space.std == (0.2470, 0.2435, 0.2616)  # over all pixels, as RFAD computes it
    assert "RFAD's own for cifar10" in " ".join(made.provenance["imported"]["notes"])


def test_rfad_whitening_matches_its_formula(rng: np.random.Generator) -> None:
    from condense_once.data.source import ArraySplit

    pixels = rng.integers(0, 256, (50, 3, 4, 4), dtype=np.uint8)
    mean, std = CIFAR10.mean, CIFAR10.std
    zca = fit_zca(ArraySplit(pixels, np.zeros(50, np.int64)), mean, std, {"recipe": "rfad", "regularisation": 0.1})
    # As RFAD computes it: covariance without centring, a share of its mean eigenvalue added, inverse square root.
    x = ((pixels / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))).reshape(50, -1)
    covariance = x.T @ x / len(x)
    values, vectors = np.linalg.eigh(covariance + 0.1 * np.trace(covariance) / len(covariance) * np.eye(48))
    expected = x @ (vectors * values**-0.5 @ vectors.T)
    np.testing.assert_allclose(zca.apply((pixels / 255).astype(np.float32)).reshape(50, -1), expected, atol=2e-3)
    np.testing.assert_allclose(zca.undo(zca.apply((pixels / 255).astype(np.float32))), pixels / 255, atol=2e-3)


def test_the_dataset_can_be_a_path(rng: np.random.Generator, images: NDArray[np.float32], tmp_path: Path) -> None:
    real = rng.integers(0, 256, (20, 3, 8, 8), dtype=np.uint8)
    names = np.array([f"kind {label}" for label in range(10)])
    np.savez(tmp_path / "real.npz", x_train=real, y_train=np.arange(20) % 10, classes=names)
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(10))
    for dataset in (tmp_path / "real.npz", str(tmp_path / "real.npz")):
        made = import_set(tmp_path / "x.npz", ImportOptions(factor=1, space="normalised", dataset=dataset))
        assert made.classes == tuple(names)
        np.testing.assert_allclose(made.space.mean, real.mean(axis=(0, 2, 3)) / 255, atol=1e-6)
        assert made.provenance["imported"]["dataset"] == "real"
    with pytest.raises(BadFile, match="no file or folder"):
        import_set(tmp_path / "x.npz", ImportOptions(factor=1, space="normalised", dataset=tmp_path / "none.npz"))


def folder(root: Path, names: list[str]) -> Path:
    """One grey-level image per class: its level is the position in `names`."""
    for level, name in enumerate(names):
        (root / name).mkdir(parents=True)
        Image.new("RGB", (8, 8), (level, level, level)).save(root / name / "0.png")
    return root


def levels(made: CondensedSet) -> dict[str, int]:
    return {made.classes[label]: int(cell[0, 0, 0]) for label, cell in zip(made.labels, made.cells, strict=True)}


PLAIN = {"factor": 1, "mean": (0.5,) * 3, "std": (0.2,) * 3}


@pytest.mark.parametrize(
    "names", [[str(k) for k in range(10)], [f"{k:05d}" for k in range(10)], [f"new{k}" for k in range(10)]]
)
def test_numbered_folders_are_named_by_their_dataset(tmp_path: Path, names: list[str]) -> None:
    made = import_set(folder(tmp_path / "set", names), ImportOptions(factor=1, dataset="cifar10"))
    assert levels(made) == {name: level for level, name in enumerate(CIFAR10.classes)}


def test_some_numbered_folders_are_those_of_the_dataset(tmp_path: Path) -> None:
    made = import_set(folder(tmp_path / "set", ["9", "3"]), ImportOptions(factor=1, dataset="cifar10"))
    assert levels(made) == {"truck": 0, "cat": 1}


def test_folders_with_names_of_the_dataset_keep_them(tmp_path: Path) -> None:
    made = import_set(folder(tmp_path / "set", ["truck", "cat"]), ImportOptions(factor=1, dataset="cifar10"))
    assert levels(made) == {"truck": 0, "cat": 1}


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (
            ["cat", "lynx"],
            "has the class 'lynx', which cifar10 does not have; pass its classes as `classes`, or `mean`",
        ),
        ([str(k) for k in range(1, 11)], "numbers its 10 classes from 1 to 10, but those of cifar10 are 0 to 9"),
        (["n02869837", "n01749939"], "has the class 'green mamba', which cifar10 does not have"),
    ],
)
def test_folders_that_do_not_fit_the_dataset_are_refused(tmp_path: Path, names: list[str], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        import_set(folder(tmp_path / "set", names), ImportOptions(factor=1, dataset="cifar10"))


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        (["new000", "new001", "new002"], ("ant", "bee", "cow"), {"ant": 0, "bee": 1, "cow": 2}),
        (["2", "10", "0"], tuple("abcdefghijk"), {"c": 0, "k": 1, "a": 2}),
        (["1", "2"], ("ant", "bee"), {"ant": 0, "bee": 1}),
        (["n02", "n01"], ("ant", "bee"), {"bee": 0, "ant": 1}),
        (["n01749939", "n02869837"], ("cobra", "bonnet"), {"cobra": 0, "bonnet": 1}),
        (["bee", "ant"], ("bee", "ant"), {"bee": 0, "ant": 1}),
    ],
)
def test_the_classes_of_folders_can_be_named(
    tmp_path: Path, names: list[str], given: tuple[str, ...], expected: dict[str, int]
) -> None:
    made = import_set(folder(tmp_path / "set", names), ImportOptions(classes=given, **PLAIN))  # type: ignore[arg-type]
    assert levels(made) == expected


def test_names_that_contradict_those_of_the_folders_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "set", ["ant", "bee"])
    for given in (("bee", "cow"), ("ant",), ("a", "b", "c")):
        with pytest.raises(BadOption, match=r"has 2 classes \(ant, bee\), which are not the"):
            import_set(path, ImportOptions(classes=given, **PLAIN))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "numbers", [{"mean": (1e308,) * 3, "std": (0.2,) * 3}, {"mean": (0.5,) * 3, "std": (1e-300,) * 3}]
)
def test_a_normalisation_that_overflows_is_refused(
    images: NDArray[np.float32], tmp_path: Path, numbers: dict[str, Any]
) -> None:
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(10))
    with pytest.raises(BadOption, match="are of pixels in 0…1"):
        import_set(tmp_path / "x.npz", ImportOptions(factor=1, space="normalised", **numbers))
