"""Verbs that train nothing run where PyTorch is not installed, and do not wait for its import where it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
        ["compare", SET, SET],
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
