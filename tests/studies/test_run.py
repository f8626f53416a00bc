"""Studies in Python: from a declaration to a table in a few lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.studies.conftest import InProcessEngine

from condense_once import Study, StudyResult, run_study
from condense_once.condensed.file import save
from condense_once.data.arrays import save_arrays
from condense_once.errors import BadOption, UnknownName
from condense_once.studies.engines import EngineOptions
from condense_once.studies.grid import StudyInput, computed_in
from condense_once.studies.jobs import EvaluationJob, Job
from condense_once.studies.progress import StudyProgress
from condense_once.studies.store import Store
from condense_once.studies.study_file import find_study
from condense_once.train.compute_config import ComputeConfig

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "studies.md"
SMALL = (
    'sets=("my.safetensors",), test="test.npz", nets=("convnet-d1-w8",), scored_by="convnet-d1-w8", epochs=("0-1",),'
    ' scoring_epochs=3, protocol="quick"'
)


@pytest.fixture
def mine(study: Study, inputs: dict[str, StudyInput], tmp_path: Path) -> Study:
    """The small study with its set and its test images in files."""
    save(inputs["tiny"].data, tmp_path / "my.safetensors")
    save_arrays(inputs["tiny"].test, tmp_path / "test.npz")
    return study.replace(sets=(str(tmp_path / "my.safetensors"),), test=str(tmp_path / "test.npz"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[InProcessEngine]:
    """Engines that were started; all of them run jobs in this process."""
    engines: list[InProcessEngine] = []

    def start(options: EngineOptions, inputs: dict[str, StudyInput]) -> InProcessEngine:
        engines.append(InProcessEngine(inputs))
        return engines[-1]

    monkeypatch.setattr(EngineOptions, "start", start)
    return engines


def test_five_lines_of_python_are_a_study(mine: Study, tmp_path: Path) -> None:
    """As a script without a main guard, which worker processes must not run again."""
    (shown,) = re.findall(r"(?ms)^```python\n(.*?)^```", DOCUMENTATION.read_text(encoding="utf-8"))
    assert len([line for line in shown.splitlines() if line]) == 5
    (tmp_path / "example.py").write_text(shown.replace('protocol="quick"', SMALL))
    words = [sys.executable, "example.py"]
    env = {**os.environ, "CXX": "none"}  # compiling takes longer than these runs
    ended = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["two rules", ""]
    assert re.split("  +", lines[2]) == ["set", "size", "yoco", "random", "evaluated in"]
    assert re.match(r"tiny +1 +\S+ ± \S+ +\S+ ± \S+ ", lines[3])
    assert "Scored by 2 runs of 3 epochs of convnet-d1-w8" in ended.stdout
    assert (tmp_path / "table.md").read_text(encoding="utf-8").startswith("## two rules\n")


def test_the_documented_study_files_run(
    mine: Study, started: list[InProcessEngine], inputs: dict[str, StudyInput], tmp_path: Path
) -> None:
    save(inputs["tiny"].data, tmp_path / "a.safetensors")
    save(replace(inputs["tiny"].data, name="other"), tmp_path / "b.safetensors")
    examples = re.findall(r"```toml\n# (\S+)\n(.*?)```", DOCUMENTATION.read_text(encoding="utf-8"), re.DOTALL)
    assert [name for name, _ in examples] == ["mine.toml", "curve.toml"]
    for name, text in examples:
        (tmp_path / name).write_text(text, encoding="utf-8")
        small = find_study(str(tmp_path / name)).replace(
            **{
                field: getattr(mine, field)
                for field in ("test", "nets", "scored_by", "epochs", "scoring_epochs", "protocol")
            },
            repeats=1,
        )
        result = run_study(small, store=tmp_path / "store.sqlite")
        assert result.failures == ()
        result.save(tmp_path / f"{name}{'.svg' if small.drawn else '.md'}")
    written = (tmp_path / "curve.toml.svg").read_text(encoding="utf-8")
    for text in (
        "Accuracy over images per class",
        "tiny",
        "other",
        "yoco",
        "random",
        "images per class",
        "test accuracy, %",
    ):
        assert f">{text}<" in written


def test_a_study_runs_what_is_missing_and_returns_its_table(
    mine: Study, started: list[InProcessEngine], tmp_path: Path
) -> None:
    store = tmp_path / "store.sqlite"
    logged: list[str] = []
    reports: list[StudyProgress] = []
    result = run_study(mine, store=store, progress=reports.append, notify=logged.append)
    assert isinstance(result, StudyResult)
    assert [row.labels for row in result.table.rows] == [("tiny", label) for label in ("1", "2", "Avg.", "Diff.")]
    assert all(state.done for state in result.states)
    assert result.failures == ()
    assert len(logged) == 1
    assert logged[0].startswith(f"8 runs: 0 known from {store}, 0 failed, 8 to run, about ")
    last = reports[-1]
    assert (last.done, last.failed, last.total, last.work_left) == (8, 0, 8, 0)
    again = run_study(mine, store=str(store), notify=logged.append)
    assert len(started) == 1, "nothing is missing, so no engine starts"
    assert len(logged) == 1
    assert str(again) == str(result)


def test_failures_are_recorded_described_and_do_not_stop_the_rest(
    mine: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, EvaluationJob) and job.facts["repeat"] == 1:
            raise ValueError("it broke")

    monkeypatch.setattr(EngineOptions, "start", lambda _, inputs: InProcessEngine(inputs, spoil))
    result = run_study(mine.replace(rules=("random",)), store=tmp_path / "store.sqlite")
    assert result.failures == ("2 runs failed (random at 1, repeat 1; random at 2, repeat 1): it broke",)
    assert "0 of 4 runs are missing, 2 failed." in str(result)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [("md", b"## a small study"), ("tex", b"% \\usepackage"), ("csv", b"set,size"), ("parquet", b"PAR1")],
)
def test_a_result_is_saved_by_its_suffix(
    mine: Study, started: list[InProcessEngine], tmp_path: Path, ending: str, expected: bytes
) -> None:
    result = run_study(mine.replace(rules=("random",), repeats=1), store=tmp_path / "store.sqlite")
    path = tmp_path / f"a.{ending}"
    result.save(path)
    assert path.read_bytes().startswith(expected)
    with pytest.raises(BadOption, match="exists already"):
        result.save(path)
    result.save(str(path), force=True)
    with pytest.raises(BadOption, match="small is a table"):
        result.save(tmp_path / "a.png")


def test_a_figure_is_saved_from_the_store(mine: Study, started: list[InProcessEngine], tmp_path: Path) -> None:
    pictures = mine.replace(rules=("yoco",), sizes=(), shown="patches")
    result = run_study(pictures, store=tmp_path / "store.sqlite")
    assert [type(job).__name__ for job in started[0].done] == ["ScoringJob"]
    result.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(BadOption, match="a figure without a table"):
        result.save(tmp_path / "a.md")


def test_what_metrics_require_is_a_table_that_needs_no_run(started: list[InProcessEngine], tmp_path: Path) -> None:
    result = run_study("table6", store=tmp_path / "store.sqlite")
    assert re.search(r"\nlbpe +– +yes +early +yes\n", str(result))
    assert result.with_paper() == result
    result.save(tmp_path / "a.md")
    assert "| lbpe | – | yes | early | yes |" in (tmp_path / "a.md").read_text(encoding="utf-8").splitlines()
    assert not started
    assert not (tmp_path / "store.sqlite").exists()


@pytest.mark.parametrize(
    ("given", "error", "expected"),
    [
        ("tabel1", UnknownName, "did you mean 'table1'"),
        (Study("mine", "no sizes"), BadOption, "has no sizes"),
    ],
)
def test_what_is_no_study_is_refused_without_a_store(
    given: Study | str, error: type[Exception], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=expected):
        run_study(given, store=tmp_path / "store.sqlite")
    assert not (tmp_path / "store.sqlite").exists()


def test_a_store_knows_its_studies_by_absolute_paths(
    mine: Study, started: list[InProcessEngine], tmp_path: Path
) -> None:
    relative = mine.replace(sets=(os.path.relpath(mine.sets[0]),), rules=("random",), repeats=1)
    run_study(relative, store=tmp_path / "store.sqlite")
    (spec,) = Store(tmp_path / "store.sqlite").study_specs()
    assert Study.of_spec(spec["study"]) == relative.replace(
        sets=(str(Path(mine.sets[0]).resolve()),), precision=computed_in("auto")
    )


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [("auto", "bfloat16", "bfloat16"), ("bfloat16", "auto", "bfloat16"), ("bfloat16", "float32", "float32")],
)
def test_the_precision_that_is_asked_for_comes_before_that_of_the_study(
    mine: Study, started: list[InProcessEngine], tmp_path: Path, own: str, asked: Any, expected: str
) -> None:
    single = mine.replace(rules=("random",), sizes=("1",), repeats=1, precision=own)
    result = run_study(single, store=tmp_path / "store.sqlite", compute=ComputeConfig(asked))
    (state,) = result.states
    assert state.evaluation is not None
    assert state.evaluation.result is not None
    assert state.evaluation.result["machine"]["computed_in"] == expected
