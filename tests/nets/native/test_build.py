from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from condense_once.nets import make_net, use_native_kernels
from condense_once.nets.native import build

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
