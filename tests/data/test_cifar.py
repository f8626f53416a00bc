from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condense_once.data.catalogue import CIFAR10, CIFAR100, MNIST
from condense_once.data.cifar import is_cifar, load_cifar
from condense_once.errors import BadFile, BadOption

BATCHES = [f"data_batch_{number}" for number in range(1, 6)]


def batch(seed: int, count: int, key: str, classes: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    labels = [int(label) for label in rng.integers(classes, size=count)]
    names = [f"{n}.png" for n in range(count)]
    return {"data": rng.integers(0, 256, (count, 3072), dtype=np.uint8), key: labels, "filenames": names}


def cifar10() -> dict[str, Any]:
    files: dict[str, Any] = {name: batch(seed, 2, "labels", 10) for seed, name in enumerate([*BATCHES, "test_batch"])}
    return files | {"batches.meta": {"label_names": list(CIFAR10.classes), "num_vis": 3072}}


def cifar100() -> dict[str, Any]:
    files = {
        name: batch(seed, 3, "fine_labels", 100) | {"coarse_labels": [0, 1, 2]}
        for seed, name in enumerate(["train", "test"])
    }
    return files | {"meta": {"fine_label_names": list(CIFAR100.classes), "coarse_label_names": ["fish"] * 20}}


def write_folder(folder: Path, files: dict[str, Any], protocol: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
    return folder


def write_tar(path: Path, files: dict[str, Any], mode: str = "w:gz", prefix: str = "cifar-10-batches-py/") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            data = content if isinstance(content, bytes) else pickle.dumps(content, 2)
            member = tarfile.TarInfo(prefix + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def test_a_folder_holds_the_images_in_the_official_order(tmp_path: Path) -> None:
    files = cifar10()
    source = load_cifar(write_folder(tmp_path / "cifar-10-batches-py", files))
    assert (source.name, source.classes, source.mean, source.std) == (
        "cifar10",
        CIFAR10.classes,
        CIFAR10.mean,
        CIFAR10.std,
    )
    assert source.train.labels.tolist() == [label for name in BATCHES for label in files[name]["labels"]]
    # A row has all of red, then all of green, then all of blue, each from the top left.
    third = files["data_batch_2"]["data"][0]
    image = source.train.take(np.array([2]))[0]
    assert image[1, 0, 5] == third[1024 + 5]
    assert image[2, 3, 0] == third[2048 + 3 * 32]
    assert source.test.labels.tolist() == files["test_batch"]["labels"]


def test_cifar100_has_its_fine_labels(tmp_path: Path) -> None:
    files = cifar100()
    source = load_cifar(write_folder(tmp_path, files, protocol=4))
    assert source.name == "cifar100"
    assert source.train.labels.tolist() == files["train"]["fine_labels"]
    assert source.classes[:2] == ("apple", "aquarium_fish")


def test_folder_parent_tar_and_gzip_are_the_same(tmp_path: Path, same: Callable[..., bool]) -> None:
    files = cifar10()
    folder = write_folder(tmp_path / "data" / "cifar-10-batches-py", files)
    assert is_cifar(folder)
    assert is_cifar(folder.parent)
    whole = load_cifar(folder)
    assert same(whole, load_cifar(folder.parent))
    assert same(whole, load_cifar(write_tar(tmp_path / "a.tar.gz", files)))
    assert same(whole, load_cifar(write_tar(tmp_path / "a.tar", files, "w", prefix="./cifar-10-batches-py/")))


def test_keys_may_be_bytes(tmp_path: Path, same: Callable[..., bool]) -> None:
    files = cifar10()
    as_bytes = {name: {key.encode(): value for key, value in content.items()} for name, content in files.items()}
    assert same(load_cifar(write_folder(tmp_path / "a", files)), load_cifar(write_folder(tmp_path / "b", as_bytes)))


def test_idc_normalises_cifar100_like_cifar10(tmp_path: Path) -> None:
    source = load_cifar(write_folder(tmp_path, cifar100()), like=CIFAR10)
    assert source.mean == CIFAR10.mean


@pytest.mark.parametrize("name", ["data_batch_1", "data_batch_4", "test_batch", "batches.meta"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    files = cifar10()
    del files[name]
    for path in (write_folder(tmp_path / "cifar", files), write_tar(tmp_path / "cifar.tar.gz", files)):
        with pytest.raises(BadFile, match=rf"lacks the file {name} of cifar10"):
            load_cifar(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"data": np.zeros((2, 3071), np.uint8)}, r"uint8 \[n, 3072\]"),
        ({"data": np.zeros((2, 3072), np.float32)}, r"uint8 \[n, 3072\]"),
        ({"data": None}, r"uint8 \[n, 3072\]"),
        ({"labels": [1, 10]}, "labels 0…9"),
        ({"labels": [1, -1]}, "labels 0…9"),
        ({"labels": [1, "2"]}, "labels 0…9"),
        ({"labels": [1, 2, 3]}, "2 images but 3 labels"),
    ],
)
def test_wrong_content_is_named(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    files = cifar10()
    files["data_batch_3"] |= change
    with pytest.raises(BadFile, match=f"^data_batch_3 in .*{complaint}"):
        load_cifar(write_folder(tmp_path, files))


def test_wrong_names_of_classes_are_refused(tmp_path: Path) -> None:
    for names in (["airplane"], None, [1] * 10):
        with pytest.raises(BadFile, match=r"batches\.meta"):
            load_cifar(write_folder(tmp_path, cifar10() | {"batches.meta": {"label_names": names}}))
    with pytest.raises(BadFile, match="does not hold a dict"):
        load_cifar(write_folder(tmp_path, cifar10() | {"batches.meta": [1]}))


def test_two_datasets_in_one_folder_are_not_chosen_from(tmp_path: Path) -> None:
    write_folder(tmp_path / "cifar-10-batches-py", cifar10())
    write_folder(tmp_path / "cifar-100-python", cifar100())
    with pytest.raises(BadFile, match="both cifar-10-batches-py and cifar-100-python; pass one"):
        load_cifar(tmp_path)


def test_a_tar_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="neither cifar-10-batches-py nor cifar-100-python"):
        load_cifar(write_tar(tmp_path / "a.tar.gz", cifar10(), prefix="elsewhere/"))


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "cifar-10-batches-py/../../evil"])
def test_a_tar_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "cifar.tar.gz"
    write_tar(path, cifar10())
    with tarfile.open(path) as archive:
        held = [(member, archive.extractfile(member)) for member in archive]
        with tarfile.open(tmp_path / "evil.tar", "w") as evil:
            for member, content in held:
                evil.addfile(member, content)
            evil.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    before = sorted(tmp_path.parent.rglob("*"))
    with pytest.raises(BadFile, match="outside its own folder"):
        load_cifar(tmp_path / "evil.tar")
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_a_link_in_a_tar_is_not_followed(tmp_path: Path) -> None:
    files = cifar10()
    secret = write_folder(tmp_path, {"secret": files.pop("test_batch")}) / "secret"
    path = write_tar(tmp_path / "cifar.tar", files, "w")
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("cifar-10-batches-py/test_batch")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(link)
    with pytest.raises(BadFile, match="lacks the file test_batch"):
        load_cifar(path)


def test_a_tar_with_a_file_twice_is_refused(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "cifar.tar", cifar10(), "w")
    write_tar(path, {"test_batch": cifar10()["data_batch_1"]}, "a")
    with pytest.raises(BadFile, match="test_batch twice"):
        load_cifar(path)


def test_a_gzip_cannot_blow_a_name_up(tmp_path: Path) -> None:
    member = tarfile.TarInfo("long")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))
    with pytest.raises(BadFile, match="implausible size"):
        load_cifar(path)


def test_code_in_a_batch_is_not_run(tmp_path: Path) -> None:
    class Command:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'was-here'}",)

    files = cifar10() | {"data_batch_2": {"data": Command(), "labels": []}}
    for path in (write_folder(tmp_path / "cifar", files), write_tar(tmp_path / "cifar.tar.gz", files)):
        with pytest.raises(BadFile, match=r"data_batch_2 in .* would run code"):
            load_cifar(path)
    assert not (tmp_path / "was-here").exists()


def test_like_must_have_as_many_channels(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="mnist has 1 channel but cifar10 has 3; choose another `like`"):
        load_cifar(write_folder(tmp_path, cifar10()), like=MNIST)


@given(data=st.data())
def test_a_damaged_batch_is_an_error_or_still_a_source(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "cifar-damaged"
    files = cifar100()
    write_folder(folder, files)
    name = data.draw(st.sampled_from(["train", "meta"]))
    (folder / name).write_bytes(data.draw(damaged(pickle.dumps(files[name], 2))))
    outcome(lambda: load_cifar(folder))


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tar(tmp_path_factory.mktemp("packed") / "cifar.tar.gz", cifar100(), prefix="cifar-100-python/")


@settings(max_examples=60)
@given(data=st.data())
def test_a_damaged_gzip_is_an_error_or_whole(packed: Path, damaged, outcome, same, data: st.DataObject) -> None:
    broken = packed.with_name("broken.tar.gz")
    broken.write_bytes(data.draw(damaged(packed.read_bytes())))
    source = outcome(lambda: load_cifar(broken))
    assert source is None or same(source, load_cifar(packed))
