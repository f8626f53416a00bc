from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from condense_once.data import encoded
from condense_once.data.catalogue import IMAGENET10, IMAGENETTE, MNIST
from condense_once.data.encoded import resized_crop
from condense_once.data.image_folder import is_image_folder, load_image_folder
from condense_once.data.metadata import channel_stats
from condense_once.data.source import ArraySplit
from condense_once.data.wnids import IMAGENET100_WORDS
from condense_once.errors import BadFile, BadOption


def picture(seed: int, height: int = 6, width: int = 6) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def save(path: Path, image: NDArray[np.uint8] | Image.Image, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, name in enumerate(
        ["train/bee/b.png", "train/bee/a.png", "train/ant/z.bmp", "val/ant/1.png", "val/bee/2.webp"]
    ):
        save(tmp_path / "insects" / name, picture(seed), **({"lossless": True} if name.endswith("webp") else {}))
    return tmp_path / "insects"


def test_classes_and_files_come_in_the_order_of_their_names(folder: Path) -> None:
    source = load_image_folder(folder)
    assert (source.name, source.classes) == ("insects", ("ant", "bee"))
    assert source.train.labels.tolist() == [0, 1, 1]
    assert np.array_equal(
        source.train.take(slice(None)), np.stack([picture(2), picture(1), picture(0)]).transpose(0, 3, 1, 2)
    )
    assert source.test.labels.tolist() == [0, 1]


@pytest.mark.parametrize("channels", [1, 3])
def test_the_classes_of_a_known_dataset_come_in_its_order(tmp_path: Path, channels: int) -> None:
    assert list(IMAGENET10.classes) != sorted(IMAGENET10.classes)
    for label, name in enumerate(IMAGENET10.classes):
        for split in ("train", "val"):
            save(tmp_path / split / name / "x.png", np.full((4, 4, 3), label, np.uint8))
    source = load_image_folder(tmp_path, channels=channels)
    assert source.classes == IMAGENET10.classes
    for part in (source.train, source.test):
        assert part.labels.tolist() == list(range(10))
        assert part.take(slice(None))[:, 0, 0, 0].tolist() == list(range(10))
    assert load_image_folder(tmp_path, like=IMAGENETTE).classes == IMAGENET10.classes


def test_rows_are_taken_in_any_order_any_number_of_times(folder: Path) -> None:
    train = load_image_folder(folder).train
    everything = train.take(slice(None))
    for rows in (
        np.array([2, 0, 2]),
        np.array([False, True, True]),
        slice(1, None),
        np.array([-1]),
        np.array([], np.int64),
    ):
        assert np.array_equal(train.take(rows), everything[rows])


def test_without_splits_there_is_only_a_train_split(folder: Path) -> None:
    source = load_image_folder(folder / "train")
    assert list(source.splits) == ["train"]
    with pytest.raises(BadOption, match=r"has no test split.* sub-folders called train and test"):
        _ = source.test


def test_hidden_files_and_other_files_are_ignored(folder: Path) -> None:
    for name in (".hidden.png", "notes.txt", "Thumbs.db"):
        (folder / "train" / "ant" / name).write_bytes(b"no image")
    (folder / "train" / ".git").mkdir()
    (folder / "train" / "README.md").write_text("no class")
    assert len(load_image_folder(folder).train.labels) == 3


def test_a_test_split_goes_before_a_val_split(folder: Path) -> None:
    for name in ("ant", "bee"):
        save(folder / "test" / name / "x.png", picture(9))
    assert np.array_equal(load_image_folder(folder).test.take(slice(1))[0], picture(9).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("L", ".png"), ("P", ".png"), ("RGBA", ".png"), ("LA", ".png"), ("1", ".png"), ("L", ".jpg"), ("CMYK", ".jpeg")],
)
def test_every_kind_of_colour_becomes_rgb_or_grey(tmp_path: Path, mode: str, suffix: str) -> None:
    level = {"1": 255, "P": 204}.get(mode, 200)  # what black and white, or a web palette, can hold
    image = Image.fromarray(np.full((8, 8, 3), level, np.uint8)).convert(mode)
    save(tmp_path / "a" / f"x{suffix}", image)
    colour = load_image_folder(tmp_path).train.take(slice(None))
    grey = load_image_folder(tmp_path, channels=1).train.take(slice(None))
    assert colour.shape == (1, 3, 8, 8)
    assert grey.shape == (1, 1, 8, 8)
    assert np.abs(colour.astype(int) - level).max() <= 2
    assert np.abs(grey.astype(int) - level).max() <= 2


def test_a_palette_with_transparency_keeps_its_colours(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([0, 1])
    save(tmp_path / "a" / "x.png", image, transparency=bytes([0, 128]))
    assert load_image_folder(tmp_path).train.take(slice(None))[0, :, 0].T.tolist() == [[10, 20, 30], [40, 50, 60]]


def test_sixteen_bits_are_refused_rather_than_clipped(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", Image.fromarray(np.full((4, 4), 1000, np.uint16)))
    with pytest.raises(BadFile, match=r"x\.png has more than 8 bits"):
        load_image_folder(tmp_path)


def test_a_camera_held_sideways_is_not_turned(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "a" / "x.jpg", picture(0, 4, 8), exif=exif)
    assert load_image_folder(tmp_path).train.shape == (3, 4, 8)


def test_without_a_common_size_one_must_be_given(folder: Path) -> None:
    save(folder / "train" / "bee" / "wide.png", picture(0, 6, 9))
    with pytest.raises(BadOption, match=r"differ in size \(.*z\.bmp is 6×6, .*wide\.png is 9×6\); pass `size`\."):
        load_image_folder(folder)
    assert load_image_folder(folder, size=4).train.take(slice(None)).shape == (4, 3, 4, 4)


def test_images_of_one_size_stay_as_they_are(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", picture(0, 3, 5))
    assert load_image_folder(tmp_path).train.shape == (3, 3, 5)


@pytest.mark.parametrize(("height", "width", "top", "left"), [(6, 11, 0, 2), (9, 6, 2, 0), (6, 6, 0, 0), (13, 6, 4, 0)])
def test_the_crop_is_in_the_middle(height: int, width: int, top: int, left: int) -> None:
    # torchvision rounds half a pixel to even: 2.5 → 2, 1.5 → 2, 3.5 → 4.
    image = picture(1, height, width)
    assert np.array_equal(resized_crop(Image.fromarray(image), 6), image[top : top + 6, left : left + 6])


def triangle(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Antialiased bilinear resizing along the first axis, by its definition."""
    scale = len(values) / size
    width = max(scale, 1.0)
    out = []
    for place in range(size):
        centre = (place + 0.5) * scale
        weights = np.array([max(0.0, 1 - abs((n + 0.5 - centre) / width)) for n in range(len(values))])
        out.append(np.tensordot(weights / weights.sum(), values, 1))
    return np.stack(out)


@pytest.mark.parametrize(("height", "width", "size"), [(37, 50, 16), (20, 11, 24), (64, 64, 7)])
def test_resizing_is_bilinear_with_antialias(height: int, width: int, size: int) -> None:
    image = picture(2, height, width)
    short = min(height, width)
    tall, wide = int(size * height / short), int(size * width / short)
    expected = triangle(triangle(image.astype(float), tall).swapaxes(0, 1), wide).swapaxes(0, 1)
    top, left = round((tall - size) / 2), round((wide - size) / 2)
    ours = np.asarray(resized_crop(Image.fromarray(image), size)).astype(float)
    assert np.abs(ours - expected[top : top + size, left : left + size]).max() <= 1.01


@pytest.mark.parametrize("options", [{"size": 0}, {"size": 10**6}, {"channels": 2}])
def test_invalid_options_are_refused(folder: Path, options: dict[str, int]) -> None:
    with pytest.raises(BadOption, match="must be 1"):
        load_image_folder(folder, **options)


def test_a_broken_image_is_named(folder: Path) -> None:
    path = folder / "train" / "bee" / "a.png"
    source = load_image_folder(folder)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(BadFile, match=r"bee/a\.png cannot be decoded"):
        source.train.take(slice(None))
    path.unlink()
    with pytest.raises(BadFile, match=r"bee/a\.png cannot be read"):
        source.train.take(slice(None))
    save(path, picture(0, 7, 7))
    with pytest.raises(BadFile, match="now has size 7×7"):
        source.train.take(slice(None))


def test_a_picture_too_large_to_decode_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", Image.new("1", (9000, 9000)))
    with pytest.raises(BadFile, match="9000×9000 pixels"):
        load_image_folder(tmp_path, size=8)


def test_train_and_test_must_have_the_same_classes(folder: Path) -> None:
    save(folder / "train" / "cat" / "x.png", picture(0))
    with pytest.raises(BadFile, match="same classes, but only one of them has cat"):
        load_image_folder(folder)


def test_a_class_without_images_is_refused(folder: Path) -> None:
    (folder / "train" / "cow").mkdir()
    with pytest.raises(BadFile, match=r"class folder cow .* holds no images"):
        load_image_folder(folder)


def test_a_folder_without_images_is_no_image_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "a" / "b").mkdir(parents=True)
    assert is_image_folder(folder)
    assert not is_image_folder(tmp_path / "empty")
    with pytest.raises(BadFile, match="holds no"):
        load_image_folder(tmp_path / "empty")


def test_like_says_channels_and_normalisation(folder: Path) -> None:
    source = load_image_folder(folder, like=MNIST)
    assert (source.mean, source.train.shape[0], source.classes) == (MNIST.mean, 1, ("ant", "bee"))


def test_imagenette_is_read_at_any_size(shared_data: Path) -> None:
    source = load_image_folder(shared_data / "imagenette", size=32)
    assert source.classes == IMAGENETTE.classes
    assert (source.mean, source.std) == (IMAGENETTE.mean, IMAGENETTE.std)
    assert np.bincount(source.train.labels).tolist() == [120] * 10
    assert np.bincount(source.test.labels).tolist() == [50] * 10
    assert source.train.take(np.array([0, 500, 1199])).shape == (3, 3, 32, 32)
    assert load_image_folder(shared_data / "imagenette").train.shape == (3, 224, 224)


@settings(max_examples=80)
@given(data=st.data())
def test_a_damaged_image_is_an_error_or_an_image(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, data: st.DataObject
) -> None:
    root = tmp_path_factory.getbasetemp() / "folder-damaged"
    suffix, options = data.draw(
        st.sampled_from([("png", {}), ("jpeg", {}), ("bmp", {}), ("webp", {}), ("webp", {"lossless": True})])
    )
    path = save(root / f"{suffix}-{len(options)}" / "a" / f"x.{suffix}", picture(0), **options)
    whole = load_image_folder(path.parents[1]).train.take(slice(None))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    source = outcome(lambda: load_image_folder(path.parents[1], size=data.draw(st.sampled_from([None, 6]))))
    if source is not None and suffix == "png":  # the only one of them with checksums
        assert np.array_equal(source.train.take(slice(None)), whole)


def test_class_folders_that_are_numbers_are_ordered_by_value(tmp_path: Path) -> None:
    for label in range(12):
        (tmp_path / str(label)).mkdir()
        Image.new("RGB", (4, 4), (label, 0, 0)).save(tmp_path / str(label) / "a.png")
    source = load_image_folder(tmp_path)
    assert source.classes == tuple(map(str, range(12)))
    assert source.train.take(slice(None))[:, 0, 0, 0].tolist() == list(range(12))


def test_ids_of_imagenet_become_words_where_they_are_known(tmp_path: Path) -> None:
    for name in ("n01440764", "n99999999"):
        save(tmp_path / name / "x.png", picture(0))
    assert load_image_folder(tmp_path).classes == ("tench", "n99999999")


def test_the_folders_of_imagenet10_keep_its_order_under_their_ids(tmp_path: Path) -> None:
    for name in sorted(list(IMAGENET100_WORDS)[:10]):
        save(tmp_path / name / "x.png", picture(0))
    source = load_image_folder(tmp_path)
    assert source.classes == IMAGENET10.classes
    assert source.classes[:2] == ("bonnet", "green mamba")
    assert source.mean == IMAGENET10.mean


def test_statistics_need_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (40, 3, 8, 8), dtype=np.uint8)
    split, taken = ArraySplit(images, np.zeros(40, np.int64)), []

    class Counted:
        labels, shape = split.labels, split.shape

        def take(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
            taken.append(len(rows))
            return split.take(rows)

    expected = channel_stats(split)
    monkeypatch.setattr("condense_once.data.metadata.CHUNK_BYTES", 7 * 192)
    assert channel_stats(Counted()) == expected
    assert taken == [7, 7, 7, 7, 7, 5]


def test_large_pictures_are_decoded_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(8):
        save(tmp_path / "a" / f"{seed}.png", picture(seed, 9, 9))
    busy, most, decode = 0, 0, encoded.decode
    gate = threading.Lock()

    def counted(content: bytes, where: str) -> Image.Image:
        nonlocal busy, most
        with gate:
            busy += 1
            most = max(most, busy)
        image = decode(content, where)
        with gate:
            busy -= 1
        return image

    monkeypatch.setattr(encoded, "decode", counted)
    monkeypatch.setattr(encoded, "LARGE", 80)
    load_image_folder(tmp_path, size=3)
    assert most == 1


def test_huge_pictures_need_a_size(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", Image.new("1", (5000, 10)))
    with pytest.raises(BadOption, match="5000×10, more than 4096 along a side; pass `size`"):
        load_image_folder(tmp_path)


def test_a_picture_that_would_grow_without_end_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", Image.new("1", (60_000, 1)))
    with pytest.raises(BadFile, match="60000×1, too long and narrow"):
        load_image_folder(tmp_path, size=64)


def test_a_file_too_large_for_a_picture_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a" / "x.png", picture(0))
    monkeypatch.setattr(encoded, "MAX_FILE", 50)
    with pytest.raises(BadFile, match=r"x\.png has \d+ bytes, more than the 50 allowed"):
        load_image_folder(tmp_path)
