from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from condense_once.nets import make_net, use_native_kernels
from condense_once.nets.native import build
from condense_once.train.hardware import how_compiled

needs_compiler = pytest.mark.skipif(not build.has_compiler(), reason="needs a C++ compiler")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CONDENSE_ONCE_CACHE", str(tmp_path))
    return tmp_path / "native"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that compile."""
    seen: list[list[str]] = []
    run = build._run

    def recorded(command: list[str], cwd: str | None = None) -> str:
        if "-o" in command:
            seen.append(command)
        return run(command, cwd)

    monkeypatch.setattr(build, "_run", recorded)
    return seen


@needs_compiler
def test_the_library_is_compiled_once_for_the_same_sources_flags_and_compiler(
    cache: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build._built()
    assert first.parent == cache
    assert [*cache.iterdir()] == [first]  # nothing else is left behind
    assert build._built() == first
    assert len(commands) == 1
    monkeypatch.setattr(build, "FLAGS", ("-DOTHER", *build.FLAGS))
    assert build._built() != first
    assert len(commands) == 2


@needs_compiler
def test_two_processes_may_compile_at_once(cache: Path) -> None:
    program = "from condense_once.nets.native.build import is_available; assert is_available()"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert [path.suffix for path in cache.iterdir()] == [".so"]


def test_the_cache_is_private(cache: Path) -> None:
    assert build._cache_folder() == cache
    assert cache.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(cache: Path, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    folder = build._cache_folder()
    assert folder != cache
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_under_one_that_others_can_write_to_is_not_used(
    cache: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir(mode=0o700)
    cache.parent.chmod(mode)  # somebody else could rename ours and put theirs in its place
    assert build._cache_folder() != cache
    assert caplog.messages == [
        f"Others can write to {cache} or a folder above it; kernels are compiled anew by every process."
    ]
    cache.parent.chmod(mode | 0o1000)  # as /tmp, where they could not
    assert build._cache_folder() == cache


def test_a_folder_of_somebody_else_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(mode=0o700)
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert build._cache_folder() != cache


def test_a_link_to_a_folder_that_others_can_write_to_is_not_followed(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    cache.symlink_to("shared")
    assert build._cache_folder() not in (cache, tmp_path / "shared")
    (tmp_path / "shared" / "inner").mkdir(mode=0o700)
    cache.unlink()
    cache.symlink_to("shared/inner")
    assert build._cache_folder() not in (cache, tmp_path / "shared" / "inner")


@needs_compiler
@pytest.mark.parametrize("plant", ["link", "writable by others", "of somebody else", "folder writable by others"])
def test_a_planted_library_is_never_loaded(
    cache: Path, commands: list[list[str]], plant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "SOURCES", ("tiny.cpp",))
    monkeypatch.setattr(build.resources, "files", lambda _: tmp_path)
    (tmp_path / "tiny.cpp").write_text('extern "C" int tiny() { return 1; }')
    name = build._built().name
    (tmp_path / "planted").write_bytes(b"planted")
    library = cache / name
    library.unlink()
    if plant == "link":
        library.symlink_to(tmp_path / "planted")
    else:
        library.write_bytes(b"planted")
        library.chmod(0o755)
    if plant == "writable by others":
        library.chmod(0o777)
    if plant == "of somebody else":
        owned = Path.lstat
        monkeypatch.setattr(
            Path, "lstat", lambda path: os.stat_result((*owned(path)[:4], os.getuid() + 1, *owned(path)[5:]))
        )
    if plant == "folder writable by others":
        cache.chmod(0o777)
    built = build._built()
    assert len(commands) == 2
    assert built.read_bytes().startswith(b"\x7fELF" if sys.platform == "linux" else b"")
    assert built.read_bytes() != b"planted"
    assert (tmp_path / "planted").read_bytes() == b"planted"


def test_a_folder_that_cannot_be_made_is_replaced_by_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONDENSE_ONCE_CACHE", str(tmp_path / "file"))
    assert build._cache_folder().is_dir()


def test_the_users_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDENSE_ONCE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build._cache_folder() == tmp_path / "condense-once" / "native"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert build._cache_folder() == tmp_path / ".cache" / "condense-once" / "native"


@pytest.mark.parametrize(
    ("compiler", "reason"), [("false", "false: exit code 1"), ("no-such-compiler", "there is no C++ compiler")]
)
def test_a_compiler_that_fails_is_reported_in_one_sentence(
    compiler: str, reason: str, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", compiler)
    assert build._load.__wrapped__() is None
    (warning,) = caplog.messages
    assert warning == f"The native kernels cannot be compiled ({reason}); using PyTorch's layers instead."


@needs_compiler
def test_an_error_in_a_source_is_reported_by_its_first_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(build, "FLAGS", ("-DBLOCK=", *build.FLAGS))
    assert build._load.__wrapped__() is None
    (warning,) = caplog.messages
    assert "error" in warning
    assert "\n" not in warning


def test_without_kernels_a_network_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_load", lambda: None)
    net = make_net("convnet-d3", (3, 16, 16), 10, generator=torch.Generator().manual_seed(0))
    before = [type(layer) for layer in net.modules()]
    assert not use_native_kernels(net)
    assert [type(layer) for layer in net.modules()] == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_without_a_compiler_says_once_that_it_is_slower(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cpu, much = torch.device("cpu"), 1e12
    build.warn_of_no_compiler.cache_clear()
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    for _ in range(2):
        assert how_compiled("auto", cpu, dtype, much) == (False, False)
    assert caplog.messages == [
        "There is no C++ compiler here (g++ or clang++): training on the CPU works, but can take several times as long."
    ]
    build.warn_of_no_compiler.cache_clear()
    monkeypatch.setenv("CXX", "none")  # a choice
    how_compiled("auto", cpu, dtype, much)
    assert len(caplog.messages) == 1
