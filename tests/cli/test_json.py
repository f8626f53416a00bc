"""With --json, every verb that makes or shows something prints one JSON object and nothing else to standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.core import TyperGroup

from condense_once.cli.app import VERBS, load_verb
from condense_once.cli.printing import print_json

Run = Callable[..., tuple[int, str, str]]
SET = "cifar10-idc-ipc10"


def commands() -> Iterator[tuple[str, Any]]:
    for name in VERBS:
        command = load_verb(name)
        if isinstance(command, TyperGroup):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())
        else:
            yield name, command


def test_every_verb_can_print_json() -> None:
    for name, command in commands():
        assert any("--json" in parameter.opts for parameter in command.params), name


@pytest.fixture
def printed(run: Run) -> Callable[..., dict[str, Any]]:
    def answer(*words: object) -> dict[str, Any]:
        code, out, err = run(*words, "--json")
        assert code == 0
        assert "next: " not in err
        found: dict[str, Any] = json.loads(out)
        return found

    return answer


@pytest.mark.parametrize(
    "words",
    [
        ("rank", SET, "--metric", "random"),
        ("score", SET, "--metric", "random"),
        ("resize", SET, "--ipc", 2),
        ("select", SET, "--rule", "yoco", "--ipc", 2),
        ("import", "a.npz", "--factor", 1, "--space", "pixels", "--dataset", "cifar10"),
    ],
)
def test_a_set_that_was_made_is_described_as_info_describes_it(
    printed: Callable[..., dict[str, Any]], words: tuple[object, ...]
) -> None:
    np.savez("a.npz", images=np.zeros((10, 3, 8, 8), np.uint8), labels=np.arange(10))
    made = printed(*words, "-o", "made.safetensors")
    shown = printed("info", "made.safetensors")
    shared = {"file", "bytes", "name", "patches", "classes", "counts", "ranking", "scores", "provenance"}
    assert shared <= made.keys()
    assert {key: made[key] for key in shared} == {key: shown[key] for key in shared}


def test_other_outputs_are_described(printed: Callable[..., dict[str, Any]]) -> None:
    sheet = printed("show", SET, "-o", "sheet.png")
    assert sheet["notes"] == ["Up to 20 of 40 patches per class are shown; pass --columns for more."]
    assert sheet["file"] == "sheet.png"
    assert sheet["width"] > 600
    exported = printed("export", SET, "-o", "a.npz")
    assert (exported["file"], exported["format"], exported["patches"]) == ("a.npz", "npz", 400)
    assert "Patches are decoded" in exported["notes"][0]
    assert printed("verify", SET)["valid"] is True
    assert printed("data", "get", "cifar10-sample") == {"name": "cifar10-sample", "folder": None}
    listed = printed("data", "list")
    assert "cifar10-sample" in [source["name"] for source in listed["sources"]]
    assert Path(listed["data_dir"]).is_absolute()
    plan = printed("plan", "rank", SET, "--metric", "random")
    assert (plan["seconds"], plan["bytes"], plan["steps"]) == (0, 0, 0)


def test_numbers_that_json_lacks_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"std": float("nan"), "runs": [float("inf"), 1.5], "file": Path("a")})
    assert json.loads(capsys.readouterr().out) == {"std": None, "runs": [None, 1.5], "file": "a"}


def test_notes_go_elsewhere(tmp_path: Path) -> None:
    words = ["-m", "condense_once", "select", SET, "--rule", "yoco", "--ipc", "1", "-o", "x.safetensors", "--json"]
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(ended.stdout)["patches"] == 40
    assert ended.stderr == "note: The rule yoco uses the stored scores by lbpe.\n"
