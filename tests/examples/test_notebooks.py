"""The notebooks run from top to bottom in a fresh kernel, and are kept with the outputs of such a run."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="notebooks are executed with the extra `notebooks`")
from examples.notebooks.execute import executed, kinds, notebooks, read

LARGEST = 250_000  # bytes of a notebook with its outputs

ALL = pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)


def code_cells(path: Path) -> list[object]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    assert {path.stem for path in notebooks()} >= {"first_steps", "photos_to_phone", "fleet", "continual_learning"}


@ALL
def test_outputs_are_kept_of_one_run_from_top_to_bottom(path: Path) -> None:
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [kind for cell in cells for kind in kinds(cell) if kind in (["error"], ["stderr"])] == []
    assert sum(bool(cell.outputs) for cell in cells) > len(cells) / 2
    assert path.stat().st_size < LARGEST


@ALL
def test_a_fresh_kernel_runs_it_without_errors_to_outputs_of_the_same_kind(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(tmp_path))  # they need no download
    kept = read(path)
    now = executed(kept)
    assert [kinds(cell) for cell in now.cells if cell.cell_type == "code"] == [kinds(cell) for cell in code_cells(path)]
    assert [cell.source for cell in now.cells] == [cell.source for cell in kept.cells]
