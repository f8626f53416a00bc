"""What is not installed: verbs that train nothing need no PyTorch and do not wait for it; the rest is said in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from condense_once.cli.list_ import KINDS
from condense_once.nets import NETS
from condense_once.registry import Lazy

SET = "cifar10-idc-ipc10"
# Runs every command line of a JSON list; prints the code and the messages of those that fail.
RUN_ALL = """
import contextlib, io, json, sys
sys.modules["torch"] = None  # any import of it fails
from condense_once.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["condense-once", *words]
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        if end.code:
            print(*words, end.code, err.getvalue())
"""


def test_no_verb_that_trains_nothing_imports_torch(tmp_path: Path) -> None:
    lines = [
        *(["list", kind] for kind in KINDS),
        ["info", SET],
        ["show", SET, "-o", "sheet.png"],
        ["verify", SET],
        ["resize", SET, "--ipc", "2", "-o", "two.safetensors"],
        ["export", "two.safetensors", "-o", "two.npz"],
        ["export", "two.safetensors", "-o", "two", "--format", "folder"],
        ["import", "two.npz", "-o", "again.safetensors"],
        ["rank", SET, "-o", "ranked.safetensors"],
        ["plan", "rank", SET],
        ["score", SET, "--metric", "lbpe"],
        ["select", SET, "--rule", "yoco", "--ipc", "1", "-o", "one.safetensors"],
        ["select", SET, "--rule", "random", "--ipc", "1", "-o", "random.safetensors"],
        ["compare", SET, SET],
        ["compare", SET, "--rule", "yoco", "--rule", "random"],
        ["data", "list"],
        ["data", "info", "cifar10-sample"],
    ]
    words = [sys.executable, "-c", RUN_ALL, json.dumps(lines)]
    ended = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert ended.stdout == ""


def test_every_network_is_where_its_entry_says() -> None:
    for info in NETS:
        assert isinstance(info.build, Lazy)
        assert info.build((3, 32, 32), 10).classifier.out_features == 10


@pytest.mark.parametrize(
    ("missing", "words", "complaint"),
    [
        ("torch", ["evaluate", SET], "needs the package torch, which is not installed; run: pip install torch (list,"),
        ("torch", ["condense", "cifar10-sample", "--ipc", "1", "--method", "dm", "-o", "x.safetensors"], "torch"),
        ("torch", ["resize", SET, "--seconds", "9", "-o", "x.safetensors"], "torch"),
        (
            "typer",
            ["info", SET],
            "pip install typer (to read condensed sets, condense_once.device in Python needs numpy",
        ),
        ("rich", ["info", SET], "pip install rich"),
        ("PIL", ["show", SET], "pip install pillow"),
    ],
)
def test_a_package_that_is_not_installed_is_named_in_one_sentence(
    tmp_path: Path, missing: str, words: list[str], complaint: str
) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from condense_once.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert complaint in ended.stderr
