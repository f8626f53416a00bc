from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.arrays import save_arrays
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.train import planning
from condense_once.train.recipe import Recipe

Run = Callable[..., tuple[int, str, str]]
STUDY = """
summary = "A small study"
sets = ["tiny.safetensors"]
test = "test.npz"
rules = ["random", "yoco"]
sizes = [1, 2]
nets = ["convnet-d1-w8"]
scored_by = "convnet-d1-w8"
epochs = ["0-1"]
training = 3
protocol = "PROTOCOL"
repeats = 2
dynamics = 2
"""


@pytest.fixture(autouse=True)
def no_long_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MEASURE", 0.0)


@pytest.fixture
def short() -> Iterator[str]:
    recipe = Recipe(epochs=3, batch=8)
    PROTOCOLS.add(Protocol("short-of-a-test", "three epochs", recipe, recipe))
    yield "short-of-a-test"
    del PROTOCOLS._entries["short-of-a-test"]


@pytest.fixture(autouse=True)
def files(run: Run, rng: np.random.Generator) -> None:
    """A set and images to test it on, in the empty folder that `run` works in."""
    labels, classes = np.repeat(np.arange(3), 3), ("ant", "bee", "cat")
    images = rng.integers(0, 256, (9, 3, 8, 8), dtype=np.uint8)
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    data = CondensedSet.from_mosaics(images, labels, factor=1, space=space, classes=classes, name="tiny")
    save(data, Path("tiny.safetensors"))
    split = ArraySplit(rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), np.arange(12) % 3)
    save_arrays(Source("test", classes, (0.5,) * 3, (0.25,) * 3, {"test": split}), Path("test.npz"))


@pytest.fixture
def mine(short: str) -> str:
    Path("mine.toml").write_text(STUDY.replace("PROTOCOL", short))
    return "mine.toml"


def test_a_study_of_ones_own_is_measured_once(run: Run, mine: str) -> None:
    code, out, err = run("study", mine, "-o", "mine.md", "-o", "mine.tex", "-o", "mine.csv")
    assert code == 0
    assert "8 trainings, 0 of them known from studies.sqlite, 0 failed; 8 to be run" in err
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["set", "size", "random", "yoco"]
    assert [line.split()[1] for line in lines[1:]] == ["1", "2", "Avg.", "Diff."]
    assert lines[1].count(" ± ") == 2
    assert Path("mine.md").read_text().startswith("## A small study")
    assert r"\toprule" in Path("mine.tex").read_text()
    with Path("mine.csv").open() as table:
        first = next(csv.DictReader(table))
    assert (first["set"], first["size"], first["column"], first["n"]) == ("tiny", "1", "random", "2")
    code, again, err = run("study", mine)
    assert (code, again) == (0, out)
    assert "to be run" not in err


def test_a_study_is_json_for_machines(run: Run, mine: str) -> None:
    code, out, _ = run("study", mine, "--only", "yoco", "--only", "1", "--repeats", 1, "--json")
    told = json.loads(out)
    assert (code, told["study"]["rules"]) == (0, ["yoco"])
    (cell,) = told["cells"]
    assert (cell["rule"], cell["size"], len(cell["kept"])) == ("yoco", "1", 3)
    assert 0 <= cell["result"]["accuracy"] <= 1
    assert cell["result"]["machine"]["torch"]


def test_a_figure_is_drawn(run: Run, mine: str) -> None:
    code, _, err = run("study", "fig-easy-hard", "--set", "tiny.safetensors", "--test", "test.npz", "-o", "easy.png")
    assert code == 0
    assert "Wrote easy.png." in err
    assert Path("easy.png").read_bytes().startswith(b"\x89PNG")


def test_status_tells_what_is_missing_and_retry_runs_what_failed(run: Run, mine: str) -> None:
    code, _, err = run("study", "status")
    assert code == 2
    assert "no studies in studies.sqlite" in err
    run("study", mine, "--repeats", 1)
    with closing(sqlite3.connect("studies.sqlite")) as db, db:
        db.execute(
            "update evaluations set result = null, error = 'it broke' where key = (select min(key) from evaluations)"
        )
    code, out, _ = run("study", "status")
    assert out.splitlines()[1].split()[0] == "mine"
    assert out.splitlines()[1].split()[3:7] == ["4", "3", "0", "1"]
    code, _, err = run("study", mine, "--repeats", 1)
    assert code == 1
    assert "note: it broke" in err
    assert "next: condense-once study retry --store studies.sqlite" in err
    run("study", mine, "--repeats", 2, "--only", "random", "--only", "1")  # of which one training stays missing
    code, out, err = run("study", "retry")
    assert "mine: 1 trainings that failed are tried again" in err
    told = json.loads(run("study", "status", "--json")[1])
    assert [(row["done"], row["missing"], row["failed"]) for row in told] == [(4, 0, 0), (2, 0, 0)]
    assert run("study", "status", "--repeats", 3)[0] == 2
    Path("tiny.safetensors").unlink()
    code, out, err = run("study", "status")
    assert code == 0
    assert "mine cannot be looked at: There is no file" in err


def test_retry_runs_what_failed_of_every_study(run: Run, mine: str) -> None:
    other = Path(mine).read_text().replace('"random", "yoco"', '"random-balanced"')
    Path("other.toml").write_text(other)
    for name in (mine, "other.toml"):
        run("study", name, "--repeats", 1, "--only", "1")
    with closing(sqlite3.connect("studies.sqlite")) as db, db:
        db.execute("update evaluations set result = null, error = 'it broke'")
    _, _, err = run("study", "retry")
    assert "mine: 2 trainings" in err
    assert "other: 1 trainings" in err
    told = json.loads(run("study", "status", "--json")[1])
    assert [(row["done"], row["failed"]) for row in told] == [(2, 0), (1, 0)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tabel1",), "did you mean 'table1'"),
        (("nothing.toml",), "There is no file nothing.toml"),
        (("table1", "--only", "yocoo"), "no 'yocoo' to be kept to; it has random"),
        (("table1", "--set", "none.safetensors"), "There is no file none.safetensors"),
        (("table1", "-o", "table.png"), "table1 is a table"),
        (("table1", "-o", "table.doc"), "table.doc"),
        (("fig-easy-hard",), "--out fig-easy-hard.png"),
        (("table1", "--protocol", "slow"), "'slow' among the protocols"),
        (
            ("table1", "--address", "1.2.3.4:5", "--set", "tiny.safetensors", "--test", "test.npz", "--only", "1"),
            "--engine ray",
        ),
        (("table1", "--set", "tiny.safetensors", "--test", "test.npz"), "cannot be kept"),
        (("table1", "--store", "no/where.sqlite", "--test", "cifar10-sample"), "does not exist"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    code, out, err = run("study", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_the_papers_numbers_stand_beside_ours_with_their_source(run: Run, short: str) -> None:
    words = ("--protocol", short, "--repeats", 1, "--only", "random", "--only", "1", "--test", "cifar10-sample")
    code, _, err = run("study", "table1", *words, "--net", "convnet-d1-w8", "--with-paper")
    assert code == 0
    assert "from He, Xiao and Zhou" in err
    assert "held against the paper's IDC sets" in err


def test_what_metrics_need_is_printed_without_measuring(run: Run) -> None:
    code, out, _ = run("study", "table6")
    assert code == 0
    assert any(line.split()[0] == "lbpe" for line in out.splitlines())
    assert not Path("studies.sqlite").exists()


def test_a_study_that_is_killed_loses_only_what_was_under_way(run: Run) -> None:
    Path("mine.toml").write_text(STUDY.replace("PROTOCOL", "quick"))
    words = [sys.executable, "-m", "condense_once", "study", "mine.toml", "--workers", "1"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        while _measured() < 2:
            assert process.poll() is None
        (worker,) = _children(process.pid)
        process.send_signal(signal.SIGKILL)
    while Path(f"/proc/{worker}").exists():  # it ends with its parent
        pass
    known = _measured()
    assert 2 <= known < 8
    code, out, err = run("study", "mine.toml")
    assert code == 0
    assert f"{8 - known} to be run" in err
    assert "(1 of 2)" not in out


def test_control_c_ends_a_study_at_once_and_keeps_what_is_known(run: Run) -> None:
    Path("mine.toml").write_text(STUDY.replace("PROTOCOL", "quick"))
    words = [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"]
    words[-1] += " from condense_once.cli import main; main()"
    with subprocess.Popen(
        [*words, "study", "mine.toml"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        while _measured() < 1:
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "stopped"
    assert "Traceback" not in err
    with closing(sqlite3.connect("studies.sqlite")) as db:
        assert db.execute("select count(*) from claims").fetchone() == (0,)


def _children(parent: int) -> list[int]:
    """Processes that work for another, but for the one that looks after shared memory."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            words = status.parent.joinpath("cmdline").read_text()
            if f"PPid:\t{parent}\n" in status.read_text() and "spawn_main" in words:
                found.append(int(status.parent.name))
    return found


def _measured() -> int:
    if not Path("studies.sqlite").exists():
        return 0
    with closing(sqlite3.connect("studies.sqlite", timeout=60)) as db:
        try:
            return int(db.execute("select count(*) from evaluations").fetchone()[0])
        except sqlite3.OperationalError:  # not yet made
            return 0
