from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from condense_once.condensed.file import SetFile, save
from condense_once.condensed.importers import FORMATS, ImportOptions, import_set
from condense_once.condensed.space import Space
from condense_once.errors import BadFile, BadOption, CondenseOnceError, UnknownName
from condense_once.metrics.config import MetricConfig, method_of

CIFAR = {"dataset": "cifar10"}
Pair = tuple[NDArray[np.float32], NDArray[np.int64]]


@pytest.fixture
def pair(rng: np.random.Generator) -> Pair:
    """Twenty images in 0…1 and their labels, two per class, in no order."""
    return rng.random((20, 3, 8, 8), dtype=np.float32), rng.permutation(np.repeat(np.arange(10), 2))


def save_torch(path: Path, value: object) -> Path:
    torch.save(value, path)
    return path


def tensors(*arrays: NDArray[Any]) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def test_idc_pairs_become_pixels(pair: Pair, tmp_path: Path) -> None:
    images, labels = pair
    images[0, 0, 0, 0], images[1, 0, 0, 0] = -0.1, 1.2
    made = import_set([save_torch(tmp_path / "data.pt", tensors(images, labels))], ImportOptions(factor=2, **CIFAR))
    assert made.space.kind == "pixels"
    assert len(made) == 80
    repacked, classes = made.mosaics()
    order = np.argsort(labels, kind="stable")
    np.testing.assert_array_equal(classes, labels[order])
    np.testing.assert_allclose(repacked / 255, images[order].clip(0, 1), atol=0.5 / 255 + 1e-6)
    assert "clipped" in made.provenance["imported"]["notes"][0]


def test_the_condenser_can_be_named_where_several_share_a_format(pair: Pair, tmp_path: Path) -> None:
    path = save_torch(tmp_path / "data.pt", tensors(*pair))
    assert method_of(import_set([path], ImportOptions(factor=1, **CIFAR))) == "idc"
    named = import_set([path], ImportOptions(factor=1, method="DREAM", **CIFAR))
    assert method_of(named) == "dream"
    assert str(MetricConfig.for_data(named).lbpe_epochs) == "top10/200"


def test_idc_and_dream_normalise_cifar100_with_the_numbers_of_cifar10(pair: Pair, tmp_path: Path) -> None:
    path = save_torch(tmp_path / "data.pt", tensors(*pair))
    assert import_set([path], ImportOptions(factor=1, dataset="cifar100")).space.std == (0.2023, 0.1994, 0.2010)


def test_dc_files_hold_several_experiments_with_numpy_scalars_beside_them(pair: Pair, tmp_path: Path) -> None:
    images, labels = pair
    normalised = [images - 0.5, (images - 0.5) * 9]
    results = {"data": [tensors(x, labels) for x in normalised], "accs_all_exps": {"ConvNet": [np.float64(0.5)]}}
    path = save_torch(tmp_path / "res_DSA_CIFAR10_ConvNet_2ipc.pt", results)
    with pytest.raises(BadOption, match="`experiment` 0 to 1"):
        import_set([path], ImportOptions(**CIFAR))
    made = import_set([path], ImportOptions(experiment=1, **CIFAR))
    assert made.space.kind == "normalised"
    assert made.factor == 1
    np.testing.assert_array_equal(made.cells, normalised[1][np.argsort(labels, kind="stable")])
    with pytest.raises(BadOption, match="there is no 2"):
        import_set([path], ImportOptions(experiment=2, **CIFAR))


@pytest.mark.parametrize("swapped", [False, True])
def test_mtt_pairs_are_recognised_in_either_order_but_their_space_is_asked_for(
    pair: Pair, tmp_path: Path, swapped: bool
) -> None:
    images, labels = pair
    files = [
        save_torch(tmp_path / "images_best.pt", torch.from_numpy(images * 9 - 4)),
        save_torch(tmp_path / "labels_best.pt", torch.from_numpy(labels)),
    ][:: -1 if swapped else 1]
    with pytest.raises(BadOption, match="`space`"):
        import_set(files, ImportOptions(**CIFAR))
    made = import_set(files, ImportOptions(space="normalised", **CIFAR))
    assert made.cells.max() == (images * 9 - 4).max()  # never clipped


def test_kip_arrays_keep_their_learned_labels(rng: np.random.Generator, tmp_path: Path) -> None:
    images = (20 * rng.normal(size=(30, 8, 8, 3))).astype(np.float32)
    labels = rng.normal(size=(30, 10)).astype(np.float32)
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", labels)
    made = import_set([tmp_path / "x.npy", tmp_path / "y.npy"], ImportOptions(space="zca", **CIFAR))
    order = np.argsort(labels.argmax(1), kind="stable")
    np.testing.assert_array_equal(made.cells, images.transpose(0, 3, 1, 2)[order])
    np.testing.assert_array_equal(made.soft_labels, labels[order])
    assert made.space.zca == {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}
    notes = " ".join(made.provenance["imported"]["notes"])
    assert all(word in notes for word in ("learned", "KIP's own", "regularisation 0.1"))


@pytest.mark.parametrize("border", [0, 2])
def test_a_grid_of_tiles_is_cut_up_exactly(rng: np.random.Generator, tmp_path: Path, border: int) -> None:
    tiles = rng.integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    picture = np.full((2 * (8 + border) + border, 3 * (8 + border) + border, 3), 7, np.uint8)
    for k, tile in enumerate(tiles):
        top, left = (border + side * (8 + border) for side in divmod(k, 3))
        picture[top : top + 8, left : left + 8] = tile
    Image.fromarray(picture).save(tmp_path / "grid.png")
    options = ImportOptions(tile=8, border=border, factor=1, mean=(0.5,) * 3, std=(0.2,) * 3, classes=("a", "b"))
    made = import_set([tmp_path / "grid.png"], options)
    np.testing.assert_array_equal(made.cells, tiles.transpose(0, 3, 1, 2))
    assert made.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_grid_needs_its_tile_size_and_the_right_one(tmp_path: Path) -> None:
    Image.new("RGB", (342, 342)).save(tmp_path / "grid.png")
    with pytest.raises(BadOption, match="`tile`"):
        import_set([tmp_path / "grid.png"], ImportOptions(factor=1, **CIFAR))
    with pytest.raises(BadOption, match="not a grid of 31-pixel tiles"):
        import_set([tmp_path / "grid.png"], ImportOptions(tile=31, factor=1, **CIFAR))


def test_a_folder_of_images_a_class(rng: np.random.Generator, tmp_path: Path) -> None:
    pictures = rng.integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    for k, picture in enumerate(pictures):
        folder = tmp_path / "set" / ("dog" if k % 2 else "cat")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{k}.png")
    made = import_set([tmp_path / "set"], ImportOptions(factor=1, mean=(0.5,) * 3, std=(0.2,) * 3))
    assert made.classes == ("cat", "dog")
    np.testing.assert_array_equal(made.cells, pictures[[0, 2, 1, 3]].transpose(0, 3, 1, 2))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_plain_arrays(pair: Pair, tmp_path: Path, layout: str) -> None:
    images, labels = pair
    np.savez(tmp_path / "a.npz", images=images if layout == "NCHW" else images.transpose(0, 2, 3, 1), labels=labels)
    with pytest.raises(BadOption, match="`space`"):
        import_set([tmp_path / "a.npz"], ImportOptions(factor=1, **CIFAR))
    made = import_set([tmp_path / "a.npz"], ImportOptions(factor=1, space="pixels", **CIFAR))
    np.testing.assert_allclose(made.patches(), images[np.argsort(labels, kind="stable")], atol=0.51 / 255)


def test_the_factor_is_asked_for_where_the_file_does_not_say(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="`factor`"):
        import_set([save_torch(tmp_path / "data.pt", tensors(*pair))], ImportOptions(**CIFAR))


def test_what_is_missing_is_asked_for_all_at_once(pair: Pair, tmp_path: Path) -> None:
    path = save_torch(tmp_path / "data.pt", tensors(*pair))
    with pytest.raises(
        BadOption, match=r"data\.pt lacks information that is needed to use it; pass `factor` \(.*\), `dataset`"
    ):
        import_set([path])


def test_mean_and_std_are_required(pair: Pair, tmp_path: Path) -> None:
    path = save_torch(tmp_path / "data.pt", tensors(*pair))
    with pytest.raises(BadOption, match="`mean` and `std`"):
        import_set([path], ImportOptions(factor=1))
    with pytest.raises(BadOption, match="together"):
        import_set([path], ImportOptions(factor=1, mean=(0.5,) * 3))
    assert import_set([path], ImportOptions(factor=1, mean=(0.5,) * 3, std=(1.0,) * 3)).classes == tuple("0123456789")


def test_normalised_values_are_not_taken_for_pixels_nor_pixels_for_normalised(pair: Pair, tmp_path: Path) -> None:
    images, labels = pair
    with pytest.raises(BadFile, match="not pixels in 0…1"):
        import_set([save_torch(tmp_path / "a.pt", tensors(images * 9 - 4, labels))], ImportOptions(factor=1, **CIFAR))
    np.savez(tmp_path / "b.npz", images=images, labels=labels)
    with pytest.raises(BadOption, match="not normalised; pass another `space`"):
        import_set([tmp_path / "b.npz"], ImportOptions(factor=1, space="normalised", **CIFAR))
    np.savez(tmp_path / "b.npz", images=images * 255, labels=labels)
    with pytest.raises(BadOption, match="divide them by 255"):
        import_set([tmp_path / "b.npz"], ImportOptions(factor=1, space="pixels", **CIFAR))
    np.savez(tmp_path / "c.npz", images=(images * 255).astype(np.uint8), labels=labels)
    with pytest.raises(BadOption, match="8-bit pixels"):
        import_set([tmp_path / "c.npz"], ImportOptions(factor=1, space="zca", **CIFAR))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda x, y: (np.where(x > 0.9, np.nan, x), y), "finite"),
        (lambda x, y: (x, y[:5]), "as many"),
        (lambda x, y: (x, y + 3), "Labels run from 3 to 12"),
        (lambda x, y: (x, y - 1), "labels of data.pt run from -1"),
        (lambda x, y: (x, y + 2**62), "classes are numbered from 0"),
        (lambda x, y: (x[:, :2], y), "1 or 3 channels"),
        (lambda x, y: (x, y.astype(np.float32) + 0.5), "integer labels"),
        (lambda x, y: ((x * 255).astype(np.int32), y), "int32"),
        (lambda x, y: (x[:0], y[:0]), "not \\[0"),
    ],
)
def test_arrays_that_are_off_are_refused(pair: Pair, tmp_path: Path, damage: Any, complaint: str) -> None:
    path = save_torch(tmp_path / "data.pt", tensors(*damage(*pair)))
    with pytest.raises(BadFile, match=complaint):
        import_set([path], ImportOptions(factor=1, **CIFAR))


class RunsCode:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("legacy", [False, True])
def test_code_in_a_file_is_never_run(tmp_path: Path, legacy: bool) -> None:
    trap = tmp_path / "ran"
    path = tmp_path / "data.pt"
    torch.save([torch.zeros(1), RunsCode(trap)], path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(BadFile, match="run code"):
        import_set([path], ImportOptions(factor=1, **CIFAR))
    path.write_bytes(pickle.dumps(RunsCode(trap)))
    with pytest.raises(BadFile):
        import_set([path], ImportOptions(factor=1, **CIFAR))
    np.save(tmp_path / "objects.npy", np.array([RunsCode(trap)], dtype=object), allow_pickle=True)
    with pytest.raises(BadFile):
        import_set([tmp_path / "objects.npy"], ImportOptions(factor=1, **CIFAR))
    assert not trap.exists()


@pytest.mark.parametrize(
    "value", [{"a": 1}, torch.zeros(3), [torch.zeros(1)], "text", {"data": []}, [1, 2], {"data": [[torch.zeros(1)]]}]
)
def test_other_pytorch_files_are_not_recognised(tmp_path: Path, value: object) -> None:
    with pytest.raises(BadFile):
        import_set([save_torch(tmp_path / "other.pt", value)], ImportOptions(factor=1, **CIFAR))


def test_files_that_are_nothing_are_said_so(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("hello world")
    (tmp_path / "empty.pt").touch()
    for name in ("text.pt", "empty.pt", "missing.pt"):
        with pytest.raises(BadFile, match=name):
            import_set([tmp_path / name])
    with pytest.raises(BadOption, match="one file, or a pair"):
        import_set([tmp_path / "text.pt"] * 3)


def test_a_wrong_format_name_answers_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'idc'"):
        import_set([tmp_path / "x"], format_name="idcc")


def test_a_named_format_must_fit(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="not laid out as kip"):
        import_set(
            [save_torch(tmp_path / "data.pt", tensors(*pair))], ImportOptions(factor=1, **CIFAR), format_name="kip"
        )


def _bytes_of(write: Any) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


X, Y = np.random.default_rng(1).random((10, 3, 8, 8), dtype=np.float32), np.arange(10)
SAMPLES = {
    "data.pt": _bytes_of(lambda out: torch.save(tensors(X, Y), out)),
    "old.pt": _bytes_of(lambda out: torch.save(tensors(X, Y), out, _use_new_zipfile_serialization=False)),
    "a.npz": _bytes_of(lambda out: np.savez_compressed(out, images=X, labels=Y)),
    "res.pt": _bytes_of(lambda out: torch.save({"data": [tensors(X - 0.5, Y)]}, out)),
    "grid.png": _bytes_of(lambda out: Image.fromarray((X[0].reshape(8, 8, 3) * 255).astype(np.uint8)).save(out, "PNG")),
}
CHECKSUMMED = ("data.pt", "a.npz", "grid.png", "res.pt")  # archives and PNG carry checksums of their contents


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@pytest.mark.parametrize("name", SAMPLES)
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255), cut=st.booleans())
def test_damaged_files_never_crash_and_never_pass_for_good(
    tmp_path: Path, name: str, place: float, flip: int, cut: bool
) -> None:
    raw = bytearray(SAMPLES[name])
    at = int(place * len(raw))
    if cut:
        del raw[at:]
    else:
        raw[at] ^= flip
    path = tmp_path / name
    path.write_bytes(raw)
    options = {
        "grid.png": {"factor": 1, "tile": 8, "border": 0},
        "a.npz": {"factor": 1, "space": "pixels"},
        "res.pt": {},
    }
    given = ImportOptions(**CIFAR, **options.get(name, {"factor": 1}))  # type: ignore[arg-type]
    try:
        made = import_set([path], given)
    except CondenseOnceError:
        return
    if name in CHECKSUMMED:
        path.write_bytes(SAMPLES[name])
        whole = import_set([path], given)
        np.testing.assert_array_equal(made.cells, whole.cells)
        np.testing.assert_array_equal(made.labels, whole.labels)


PUBLISHED: list[tuple[list[str], dict[str, Any], tuple[int, str]]] = [
    (["mtt-cifar10-ipc10.images.pt", "mtt-cifar10-ipc10.labels.pt"], {"space": "normalised"}, (100, "mtt")),
    (["kip-cifar10-ipc10.images.npy", "kip-cifar10-ipc10.labels.npy"], {"space": "zca"}, (100, "kip")),
    (["dsa-cifar10-ipc10.grid.png"], {"tile": 32, "factor": 1}, (100, "grid")),
    (["dc-cifar10-ipc10.grid.png"], {"tile": 32, "factor": 1}, (100, "grid")),
    (["res_DSA_CIFAR10_ConvNet_1ipc.pt"], {"experiment": 4}, (10, "dc")),
    (["res_DC_CIFAR100_ConvNet_1ipc.pt"], {"dataset": "cifar100"}, (100, "dc")),
]


@pytest.mark.parametrize(("names", "options", "expected"), PUBLISHED)
def test_published_sets_are_read(
    shared_data: Path, names: list[str], options: dict[str, Any], expected: tuple[int, str]
) -> None:
    made = import_set([shared_data / "condensed" / name for name in names], ImportOptions(**{**CIFAR, **options}))
    assert (len(made), made.provenance["imported"]["format"]) == expected
    assert made.shape == (3, 32, 32)
    if expected[1] != "kip":
        assert set(made.counts().tolist()) == {len(made) // len(made.classes)}


def test_what_a_file_says_itself_cannot_be_contradicted(pair: Pair, tmp_path: Path) -> None:
    images, labels = pair
    idc = save_torch(tmp_path / "data.pt", tensors(images, labels))
    with pytest.raises(BadOption, match="has space pixels, not normalised; leave out `space`"):
        import_set([idc], ImportOptions(factor=1, space="normalised", **CIFAR))
    dc = save_torch(tmp_path / "res.pt", {"data": [tensors(images - 0.5, labels)]})
    with pytest.raises(BadOption, match="has factor 1, not 2; leave out `factor`"):
        import_set([dc], ImportOptions(factor=2, **CIFAR))


@pytest.mark.parametrize(
    "options",
    [
        *({"tile": 32}, {"border": 0}, {"experiment": 0}, {"size": 8}),
        *({"zca_method": "kip"}, {"zca_regularisation": 1.0}, {"dtype": "float16"}),
    ],
)
def test_options_that_mean_nothing_here_are_refused(pair: Pair, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match="leave"):
        import_set([save_torch(tmp_path / "data.pt", tensors(*pair))], ImportOptions(factor=1, **CIFAR, **options))


def test_the_same_pair_can_be_read_as_plain_arrays_with_every_fact_given(pair: Pair, tmp_path: Path) -> None:
    images, labels = pair
    path = save_torch(tmp_path / "data.pt", tensors(images * 9 - 4, labels))
    made = import_set([path], ImportOptions(factor=1, space="normalised", **CIFAR), format_name="arrays")
    assert made.space.kind == "normalised"


def test_zca_options_are_validated(rng: np.random.Generator, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rng.normal(size=(5, 8, 8, 3)).astype(np.float32))
    np.save(tmp_path / "y.npy", rng.normal(size=(5, 10)).astype(np.float32))
    files = [tmp_path / "x.npy", tmp_path / "y.npy"]
    for strength in (float("nan"), -1.0, 0.0):
        with pytest.raises(BadOption, match="positive regularisation"):
            import_set(files, ImportOptions(space="zca", zca_regularisation=strength, **CIFAR))
    with pytest.raises(BadOption, match=r"its whitening was fitted to; pass `dataset`"):
        import_set(files, ImportOptions(space="zca", mean=(0.5,) * 3, std=(0.2,) * 3))
    made = import_set(files, ImportOptions(space="zca", zca_method="kornia", zca_regularisation=0.5, **CIFAR))
    assert made.space.zca == {"recipe": "kornia", "regularisation": 0.5, "source": "cifar10"}


@pytest.mark.parametrize("change", [lambda t: t.requires_grad_(), lambda t: t.bfloat16(), lambda t: t.half()])
def test_tensors_are_read_however_they_were_saved(pair: Pair, tmp_path: Path, change: Any) -> None:
    images, labels = tensors(*pair)
    made = import_set([save_torch(tmp_path / "data.pt", [change(images), labels])], ImportOptions(factor=1, **CIFAR))
    np.testing.assert_allclose(made.patches(), pair[0][np.argsort(pair[1], kind="stable")], atol=0.01)


def test_sparse_tensors_are_refused(pair: Pair, tmp_path: Path) -> None:
    images, labels = tensors(*pair)
    with pytest.raises(BadFile, match="dense"):
        import_set([save_torch(tmp_path / "data.pt", [images.to_sparse(), labels])], ImportOptions(factor=1, **CIFAR))


@pytest.mark.parametrize("factor", [9, 30_000, 10**20])
def test_a_factor_that_leaves_no_pixels_is_refused_at_once(pair: Pair, tmp_path: Path, factor: int) -> None:
    with pytest.raises(BadOption, match="leaves no pixels"):
        import_set([save_torch(tmp_path / "data.pt", tensors(*pair))], ImportOptions(factor=factor, **CIFAR))


@pytest.mark.parametrize(
    "odd", [{"zca": "[1, 2]"}, {"zca": "[" * 100_000}, {"classes": "cat"}, {"factor": "two"}, {"ranking": "3"}]
)
def test_an_npz_that_describes_itself_wrongly_is_refused(pair: Pair, tmp_path: Path, odd: dict[str, str]) -> None:
    images, labels = pair
    texts = {key: np.array(value) for key, value in odd.items()}
    np.savez(tmp_path / "a.npz", images=images, labels=labels, origin=labels, **texts)  # type: ignore[arg-type]
    with pytest.raises(BadFile, match="has an invalid description"):
        import_set([tmp_path / "a.npz"], ImportOptions(factor=1, space="pixels", **CIFAR))


def test_a_tile_size_that_merely_divides_is_noticed_by_the_borders(rng: np.random.Generator, tmp_path: Path) -> None:
    picture = np.zeros((342, 342, 3), np.uint8)
    for top in range(2, 342, 34):
        for left in range(2, 342, 34):
            picture[top : top + 32, left : left + 32] = rng.integers(0, 256, (32, 32, 3))
    Image.fromarray(picture).save(tmp_path / "grid.png")
    with pytest.raises(BadOption, match="not a grid of 15-pixel tiles"):
        import_set([tmp_path / "grid.png"], ImportOptions(tile=15, factor=1, **CIFAR))
    assert len(import_set([tmp_path / "grid.png"], ImportOptions(tile=32, factor=1, **CIFAR))) == 100


def test_mtt_normalises_cifar100_with_the_numbers_of_cifar10(pair: Pair, tmp_path: Path) -> None:
    files = [
        save_torch(tmp_path / "labels_best.pt", torch.from_numpy(pair[1])),
        save_torch(tmp_path / "images_best.pt", torch.from_numpy(pair[0] - 0.5)),
    ]
    made = import_set(files, ImportOptions(space="normalised", dataset="cifar100"))
    assert made.space.std == (0.2023, 0.1994, 0.2010)
    assert made.name == "images_best"


def test_names_that_are_no_text_do_no_harm(pair: Pair, tmp_path: Path) -> None:
    path = Path(str(tmp_path / "data") + "\udcff.pt")
    try:
        save_torch(tmp_path / "data.pt", tensors(*pair)).rename(path)
    except (OSError, UnicodeError):
        pytest.skip("this file system has only names that are text")
    save(import_set([path], ImportOptions(factor=1, **CIFAR)), tmp_path / "out.safetensors")
    header = SetFile.open(tmp_path / "out.safetensors").header
    assert header.name == "data?"
    assert list(header.provenance["imported"]["files"]) == ["data?.pt"]


def test_every_format_has_a_line_to_describe_it() -> None:
    assert all(entry.summary for entry in FORMATS)


def test_labels_that_are_integers_in_floating_point_are_read(tmp_path: Path) -> None:
    images, labels = np.full((4, 3, 8, 8), 0.5, np.float32), np.array([0.0, 1.0, 0.0, 1.0], np.float32)
    np.savez(tmp_path / "float.npz", images=images, labels=labels)
    options = ImportOptions(factor=1, space="pixels", mean=(0.5,) * 3, std=(0.5,) * 3)
    assert import_set(tmp_path / "float.npz", options).counts().tolist() == [2, 2]
    np.savez(tmp_path / "half.npz", images=images, labels=labels / 2)
    with pytest.raises(CondenseOnceError, match="integer labels"):
        import_set(tmp_path / "half.npz", options)


def test_both_spellings_of_names_are_known() -> None:
    options = ImportOptions(space="normalized", dataset="CIFAR-100")  # type: ignore[arg-type]
    assert (options.space, options.dataset) == ("normalised", "cifar100")
    assert Space("Normalized", (0.5,), (0.5,)).kind == "normalised"  # type: ignore[arg-type]
    with pytest.raises(BadOption, match="`space` must be pixels, normalised or zca, not 'normal'"):
        ImportOptions(space="normal")  # type: ignore[arg-type]
