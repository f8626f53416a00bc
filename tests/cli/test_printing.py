from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.cli import printing
from condense_once.cli.printing import err_console, note, print_fields, print_rows, track
from condense_once.condensed.bundled import SETS
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet, Ranking

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"


class Screen(io.StringIO):
    """What a terminal would be given."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("odd", ["[/x]", "[red]", ":cat:", "n" * 300])
def test_names_are_printed_as_they_are(run: Run, pixel_set: CondensedSet, odd: str) -> None:
    file = "[red] :dog:.safetensors"
    save(replace(pixel_set, name=odd, classes=("ant", odd, "cat"), provenance={odd: odd}), file)
    code, out, err = run("info", file)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith(f"{odd}  ({file}, ")
    assert lines[-1] == f"provenance: {odd}  {odd}"
    (classes,) = (line.split(maxsplit=1)[1] for line in lines if line.startswith("classes"))
    assert classes == f"3: ant, {odd if len(odd) < 32 else odd[:31] + '…'}, cat"
    assert err == f"next: condense-once show '{file}'\n"
    assert run("show", file)[1].startswith("[red] :dog:.png: ")
    assert Path("[red] :dog:.png").exists()


def test_control_characters_never_reach_the_terminal(run: Run, pixel_set: CondensedSet) -> None:
    save(replace(pixel_set, provenance={"made by": "\x1b[31mtwo\nlines"}), "a.safetensors")
    assert run("info", "a.safetensors")[1].splitlines()[-1] == r"provenance: made by  \x1b[31mtwo\nlines"


FORGED = "a\nnext: rm -rf ~\r\x1b[31m\x9b\u202e"  # a line of its own, a colour, and text from right to left


@pytest.mark.parametrize(
    "words",
    [
        ("import", "{forged}.npz", "--factor", 1, "--space", "pixels", "--dataset", "cifar10", "-o", "{out}"),
        ("export", "{set}", "-o", "{out}.npz"),
        ("info", "{set}"),
        ("show", "{set}", "-o", "{out}.png"),
        ("verify", "{set}"),
        ("rank", "{set}", "--metric", "random", "-o", "{out}"),
        ("resize", "{set}", "--total", 4, "-o", "{out}"),
        ("resize", "{set}", "--ipc", 99, "-o", "{out}"),
        ("resize", "{set}", "--classes", "{out}", "-o", "{out}"),
        ("select", "{set}", "--rule", "random", "--total", 4, "-o", "{out}"),
        ("select", "{set}", "--rule", "{out}", "--total", 4, "-o", "{out}"),
        ("compare", "{set}", "cifar10-idc-ipc10"),
        ("evaluate", "{set}"),
        ("condense", "{set}", "--method", "{out}", "--ipc", 1, "-o", "{out}"),
        ("study", "{set}"),
        ("list", "{set}"),
        ("data", "get", "{set}"),
        ("data", "info", "{set}"),
        ("data", "info", "{folder}", "--size", 8),
        ("{set}",),
        ("info", "{set}", "--{set}"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_names_and_paths_never_write_lines_of_their_own(
    run: Run, pixel_set: CondensedSet, words: tuple[object, ...], as_json: bool
) -> None:
    ranking = Ranking("lbpe", "easy", balanced=False)
    save(replace(pixel_set, ranking=ranking, provenance={FORGED: FORGED}), "set.safetensors")
    Path("set.safetensors").rename(FORGED)
    np.savez(f"{FORGED}.npz", images=np.zeros((10, 3, 8, 8), np.uint8), labels=np.arange(10))
    picture = Path("pictures", "train", FORGED)
    picture.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(picture / "1.png")
    places = {"set": FORGED, "forged": FORGED, "out": f"{FORGED}2", "folder": "pictures"}
    typed = [str(word).format(**places) for word in words]
    _, out, err = run(*typed, *(["--json"] if as_json else []))
    assert all(c.isprintable() for line in (out + err).split("\n") for c in line)
    assert not any(line.startswith("next: rm") for line in (out + err).split("\n"))


def test_a_study_may_have_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(err_console, "is_interactive", True)
    monkeypatch.setattr(sys, "stderr", screen)
    with track(FORGED) as progress:
        progress(1, 2)
    assert "\nnext" not in screen.getvalue()
    assert "\x9b" not in screen.getvalue()


def test_verbs_print_in_no_other_way() -> None:
    folder = Path(printing.__file__).parent
    direct = re.compile(r"(?<!\w)(typer\.echo|print|console\.print|err_console\.print)\(")
    found = {path.name for path in folder.glob("*.py") if direct.search(path.read_text(encoding="utf-8"))}
    assert found == {"__init__.py", "app.py", "printing.py"}  # errors, the version, everything else


def test_on_a_terminal_names_are_printed_as_they_are_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(err_console, "is_interactive", True)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    print_fields("[/title]", {"[/name]": "[/value]", "long": "x" * 200})
    print_rows(["[/head]"], [["[red]"]])
    note(["[/note]" + 30 * " word"])
    with track("[/job]") as progress:
        progress(1, 2)
    shown = screen.getvalue()
    assert all(f"[/{part}]" in shown for part in ("title", "name", "value", "head", "note", "job"))
    assert "[red]" in shown
    assert "x" * 200 not in shown  # folded
    assert 30 * " word" in shown  # left to the terminal to fold


def test_on_a_terminal_long_names_are_folded_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", screen)
    print_rows(["set", "n"], [["a" * 60 + "1", 1], ["a" * 60 + "2", 2]])
    shown = "".join(line.split("  ")[0].strip() for line in screen.getvalue().splitlines()[1:])
    assert shown == "a" * 60 + "1" + "a" * 60 + "2"


def test_in_a_pipe_nothing_is_folded(run: Run, pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    method = "word " * 50 + "end"
    save(replace(pixel_set, provenance={"method": method}), "a.safetensors")
    _, out, _ = run("info", "a.safetensors")
    assert out.splitlines()[-1] == f"provenance: method  {method}"
    (checksum,) = (line.split()[1] for line in out.splitlines() if line.startswith("sha256"))
    assert len(checksum) == 64
    assert not any(line.endswith(" ") for line in out.splitlines())
    assert len(run("list", "sets")[1].splitlines()) == 1 + len(SETS.names())
    (line,) = run("show", BUNDLED)[2].splitlines()
    assert line.startswith("note: Up to 20 of 40 patches per class are shown")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_output_will_do(encoding: str) -> None:
    command = [sys.executable, "-m", "condense_once", "info", BUNDLED]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    told = subprocess.run(command, capture_output=True, env=environment)
    assert told.returncode == 0
    assert "400, each 3×32×32".encode(encoding, "backslashreplace") in told.stdout
    told = subprocess.run([*command, "--json"], capture_output=True, env=environment)
    assert json.loads(told.stdout.decode(encoding))["name"] == BUNDLED
