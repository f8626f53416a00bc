from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from condense_once.errors import BadFile, BadOption, InaccessibleFile
from condense_once.files import atomic_file, atomic_folder, exclusive, existing_file, refuse_existing, remove_abandoned


def write(path: Path, content: bytes = b"new", *, force: bool = False) -> None:
    with atomic_file(path, force=force) as out:
        out.write(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=[0o022, 0o077, 0o002], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_a_file_appears_whole_and_an_old_one_only_goes_by_force(tmp_path: Path) -> None:
    write(tmp_path / "a", b"old")
    with pytest.raises(BadOption, match="a exists already; pass `force`"):
        write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"old"
    write(tmp_path / "a", force=True)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_what_was_there_and_no_part(tmp_path: Path, error: type[BaseException]) -> None:
    def interrupted_file() -> None:
        with atomic_file(tmp_path / "a", force=True) as out:
            out.write(b"half")
            raise error

    def interrupted_folder() -> None:
        with atomic_folder(tmp_path / "folder") as part:
            (part / "b").write_bytes(b"half")
            raise error

    write(tmp_path / "a", b"old")
    for interrupted in (interrupted_file, interrupted_folder):
        with pytest.raises(error):
            interrupted()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "link to a pipe", "link to itself"])
def test_what_is_not_a_regular_file_is_never_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "device":
        path = Path("/dev/null")
    elif kind == "link to a pipe":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe")
    else:
        path.symlink_to("out")
    for force in (False, True):
        with pytest.raises(BadOption, match=f"{path} exists and is not a regular file"):
            refuse_existing(path, force)
    if kind != "device":  # nobody's /dev/null depends on our tests
        with pytest.raises(BadOption, match="not a regular file"):
            write(path, force=True)
        assert not path.is_file()


def test_a_folder_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path, tmp_path / "link"):
        with pytest.raises(BadOption, match="is an existing folder"):
            write(path, force=True)
        with pytest.raises(BadOption, match="is an existing folder"), atomic_folder(path):
            pass


def test_a_folder_to_write_into_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=f"The folder {tmp_path / 'none'} does not exist"):
        write(tmp_path / "none" / "a")


def test_an_input_is_not_overwritten_under_whatever_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = tmp_path / "in"
    given.write_bytes(b"precious")
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "hard").hardlink_to(given)
    for out in (given, Path("in"), Path("link"), tmp_path / "hard", tmp_path / ".." / tmp_path.name / "in"):
        for force in (False, True):
            with pytest.raises(BadOption, match=r"is also an input \(.*in\); choose another output name"):
                refuse_existing(out, force, inputs=[tmp_path / "other", given])
    (tmp_path / "other").write_bytes(b"precious")
    refuse_existing(tmp_path / "other", True, inputs=[given])
    refuse_existing(tmp_path / "new", False, inputs=[given, tmp_path / "new"])


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk/real")
    write(tmp_path / "link", b"first")  # as yet it points nowhere
    assert (tmp_path / "disk" / "real").read_bytes() == b"first"
    with pytest.raises(BadOption, match="link exists already"):
        write(tmp_path / "link")
    write(tmp_path / "link", b"second", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "real").read_bytes() == b"second"
    (tmp_path / "folder").symlink_to("disk/folder")
    with atomic_folder(tmp_path / "folder") as part:
        (part / "a").touch()
    assert (tmp_path / "folder").is_symlink()
    assert names(tmp_path / "disk") == ["folder", "real"]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127 + "x", "界" * 85], ids=["ascii", "two bytes", "three bytes"])
def test_every_name_that_a_system_takes_can_be_written(tmp_path: Path, name: str) -> None:
    assert len(os.fsencode(name)) == 255
    write(tmp_path / name)
    write(tmp_path / name, force=True)
    (tmp_path / name).unlink()
    with atomic_folder(tmp_path / name):
        pass
    assert names(tmp_path) == [name]


def test_the_rights_are_those_of_any_new_file(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("another thread may write a file just then"))
    monkeypatch.delattr(os, "fchmod")  # as on Windows
    write(tmp_path / "file")
    with atomic_folder(tmp_path / "folder"):
        pass
    monkeypatch.undo()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~umask


def test_everything_is_on_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: dict[int, bool] = {}  # by file, whether the name was there already
    path, real = tmp_path / "out", os.fsync

    def fsync(handle: int) -> None:
        synced[os.fstat(handle).st_ino] = path.exists()
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_folder(path) as part:
        (part / "sub").mkdir()
        for name in ("a", "sub/b"):
            (part / name).write_bytes(b"content")
    inside = [path, *path.rglob("*")]
    assert len(inside) == 4
    assert {synced.get(one.stat().st_ino) for one in inside} == {False}
    assert synced[tmp_path.stat().st_ino] is True


def test_only_regular_files_with_something_in_them_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name, complaint in (("pipe", "not a regular file"), ("empty", "is empty"), ("none", "no file"), (".", "not a")):
        with pytest.raises(BadFile, match=complaint):
            existing_file(tmp_path / name)
    (tmp_path / "a").write_bytes(b"a")
    assert existing_file(tmp_path / "a") == tmp_path / "a"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_another_process_wrote_in_the_meantime_stays_unless_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")  # as on FAT

    def race(force: bool) -> None:
        with atomic_file(tmp_path / "a", force=force) as out:
            out.write(b"ours")
            (tmp_path / "a").write_bytes(b"theirs")

    if not links:
        monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(BadOption, match=r"a was written by another process .* left as it is; .* `force`"):
        race(force=False)
    assert (tmp_path / "a").read_bytes() == b"theirs"
    race(force=True)
    assert (tmp_path / "a").read_bytes() == b"ours"
    write(tmp_path / "b")
    assert (tmp_path / "b").stat().st_nlink == 1
    assert names(tmp_path) == ["a", "b"]


def test_a_folder_that_another_process_wrote_in_the_meantime_stays(tmp_path: Path) -> None:
    def race() -> None:
        with atomic_folder(tmp_path / "a") as part:
            (part / "ours").touch()
            (tmp_path / "a").mkdir()
            (tmp_path / "a" / "theirs").touch()

    with pytest.raises(BadOption, match="was written by another process"):
        race()
    assert names(tmp_path / "a") == ["theirs"]
    assert names(tmp_path) == ["a"]


KILLED = """
import os, signal, sys
from pathlib import Path
from condense_once.files import atomic_file, atomic_folder
with atomic_file(Path(sys.argv[1], "file")) as out, atomic_folder(Path(sys.argv[1], "folder")) as part:
    out.write(b"half")
    out.flush()
    (part / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_parts_of_killed_processes_are_removed_and_those_of_running_ones_stay(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", KILLED, tmp_path], env=environment, check=False).returncode == -9
    left = names(tmp_path)
    assert len(left) == 2
    with atomic_file(tmp_path / "file"), atomic_folder(tmp_path / "folder"):
        running = names(tmp_path)
        assert len(running) == 2
        assert not {*left} & {*running}
        remove_abandoned(tmp_path / "file")
        remove_abandoned(tmp_path / "folder")
        assert names(tmp_path) == running
    assert names(tmp_path) == ["file", "folder"]


def test_only_parts_of_the_same_target_are_removed(tmp_path: Path) -> None:
    mine = [".a.part", ".a.0123456789abcdef.partial", ".b.0123456789abcdef.part", "a.0123456789abcdef.part"]
    for name in (*mine, ".a.0123456789abcdef.part"):
        (tmp_path / name).touch()
    (tmp_path / "precious").touch()
    (tmp_path / ".a.fedcba9876543210.part").symlink_to("precious")
    remove_abandoned(tmp_path / "a")
    assert names(tmp_path) == sorted([*mine, "precious", ".a.fedcba9876543210.part"])


def test_a_part_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    real, removed = fcntl.flock, []

    def flock(handle: int, operation: int) -> None:
        if not removed and operation == fcntl.LOCK_SH:  # another process comes in between
            (part,) = tmp_path.iterdir()
            part.unlink()
            removed.append(part)
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    write(tmp_path / "a")
    assert removed
    assert names(tmp_path) == ["a"]


def test_a_full_disk_is_one_sentence_with_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InaccessibleFile, match=r"/a cannot be written: No space left on device\.$"):
        write(tmp_path / "a")
    assert names(tmp_path) == []


def test_an_error_about_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"), atomic_file(tmp_path / "a"):
        (tmp_path / "missing").read_bytes()
    assert names(tmp_path) == []


def test_a_lock_leaves_no_file_behind(tmp_path: Path) -> None:
    with exclusive(tmp_path / "a"):
        with pytest.raises(BadFile, match="Another process is using"), exclusive(tmp_path / "a"):
            pass
        assert names(tmp_path) == ["a.lock"]
    assert names(tmp_path) == []
