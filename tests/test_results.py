"""The record of measured accuracies, and the tables that are generated from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def record() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", ROOT / "tools" / "record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_of_the_docs_are_what_was_measured(record: ModuleType) -> None:
    assert record.outdated() == []


def test_the_readme_and_the_results_have_such_tables(record: ModuleType) -> None:
    for page in ("README.md", "results/README.md"):
        assert record.TABLE.search((ROOT / page).read_text()), page


def test_a_number_changed_by_hand_is_noticed(record: ModuleType) -> None:
    page = (ROOT / "README.md").read_text()
    found = record.TABLE.search(page)
    changed = page.replace(found["table"], found["table"].replace("36.2", "38.2"))
    assert changed != page
    assert record.with_tables(changed, record.read_cells()) == page


def test_every_cell_says_what_was_measured_and_with_what(record: ModuleType) -> None:
    cells = record.read_cells()
    assert len({tuple(cell[field] for field in record.IDENTITY) for cell in cells}) == len(cells)
    for cell in cells:
        assert 0 < cell["mean"] < 100, cell
        assert cell["n"] >= 1, cell
        assert len(cell["digest"]) == 16, cell
        assert (cell["std"] is None) == (cell["n"] == 1), cell
        assert {"seconds", "version", "torch", "date", "protocol", "net", "test"} <= set(cell)


def cell(rule: str, ipc: int, mean: float, std: float | None = 0.5, n: int = 3) -> dict[str, object]:
    common = {"set": "s", "net": "convnet-d3", "test": "cifar10", "protocol": "quick-0a", "published": None}
    return {**common, "rule": rule, "ipc": ipc, "mean": mean, "std": std, "n": n}


def test_a_table_shows_the_best_rule_few_runs_and_the_whole_set(record: ModuleType) -> None:
    query = {"rows": {"ipc": [1, 10]}, "columns": {"rule": {"yoco": "YOCO", "random": "random"}}, "where": {"set": "s"}}
    cells = [cell("yoco", 1, 36.25), cell("random", 1, 26.4, None, 1), cell("whole", 10, 60.4)]
    assert record.render(query, cells).splitlines() == [
        "| | YOCO | random |",
        "|---|---|---|",
        "| 1 | **36.3 ± 0.5** | 26.4, n = 1 |",
        "| 10 | 60.4 ± 0.5 | |",
    ]


def test_a_column_may_be_a_set_with_a_rule_of_its_own(record: ModuleType) -> None:
    columns = {"nested": {"set": "t", "rule": ["own order", "whole"]}, "YOCO": {"set": "s", "rule": ["yoco", "whole"]}}
    nested = [{**cell("own order", 1, 41.0), "set": "t"}, {**cell("whole", 10, 63.5), "set": "t"}]
    table = record.render({"rows": {"ipc": [1, 10]}, "columns": columns}, [*nested, cell("yoco", 1, 36.2)])
    assert table.splitlines()[2:] == ["| 1 | **41.0 ± 0.5** | 36.2 ± 0.5 |", "| 10 | 63.5 ± 0.5 | |"]


def test_a_query_that_two_cells_answer_is_refused(record: ModuleType) -> None:
    query = {"rows": {"ipc": [1]}, "columns": {"rule": ["yoco"]}, "where": {}}
    with pytest.raises(SystemExit, match="2 cells are"):
        record.render(query, [cell("yoco", 1, 36.2), {**cell("yoco", 1, 37.0), "set": "t"}])
