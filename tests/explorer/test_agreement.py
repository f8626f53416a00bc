"""The page keeps exactly what the library keeps: node runs the page's own scripts on the data of a page, at every size."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.conftest import NODE, needs_node, ranked_set
from typer.testing import CliRunner

import condense_once
from condense_once.condensed.set import CondensedSet

SCRIPT = Path(__file__).parent / "js" / "keep_rows.js"
PARAMETERS = {"ipc": "ipc", "patches": "total", "bytes": "bytes"}

pytestmark = needs_node


def kept_by_page(page: Path) -> list[dict[str, list[dict[str, Any]]]]:
    done = subprocess.run([str(NODE), str(SCRIPT), str(page)], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def budget_of(unit: str, stop: dict[str, Any]) -> dict[str, Any]:
    if unit == "fraction":
        return {"fraction": f"{stop['value']}%"}
    return {PARAMETERS[unit]: int(stop["value"])}


def assert_same(made: CondensedSet, whole: CondensedSet, stop: dict[str, Any]) -> None:
    assert sorted(made.origin) == sorted(whole.origin[stop["rows"]])
    assert made.counts().tolist() == stop["counts"]
    assert len(made) == stop["count"]


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("counts", [(5, 3, 8), (8, 8, 8), (4, 0, 9)])
def test_every_size_in_every_unit_is_what_resize_keeps(
    page_file: Path, counts: tuple[int, ...], balanced: bool, factor: int
) -> None:
    data = ranked_set(counts=counts, balanced=balanced, prefer="hard", factor=factor)
    condense_once.report(data, page_file, train=False)
    for unit, stops in kept_by_page(page_file)[0].items():
        for stop in stops:
            assert_same(condense_once.resize(data, **budget_of(unit, stop)), data, stop)


def test_every_size_of_the_bundled_set_is_what_resize_keeps(page_file: Path) -> None:
    data = condense_once.load("cifar10-idc-ipc10")
    condense_once.report("cifar10-idc-ipc10", page_file, train=False)
    units = kept_by_page(page_file)[0]
    assert [len(units[unit]) for unit in ("ipc", "patches", "fraction", "bytes")] == [10, 400, 100, 40]
    for unit, stops in units.items():
        for stop in stops:
            assert_same(condense_once.resize(data, **budget_of(unit, stop)), data, stop)


@pytest.mark.parametrize("counts", [(5, 3, 8), (4, 0, 9)])
def test_every_other_rule_keeps_what_select_keeps(page_file: Path, counts: tuple[int, ...]) -> None:
    data = ranked_set(counts=counts)
    condense_once.report(data, page_file, train=False)
    contents = page_contents(page_file)
    rules = [ranking["rule"] for ranking in contents["rankings"]]
    assert rules == [
        "yoco", "lbpe-hard-balanced", "lbpe", "lbpe-hard", "aum-easy-balanced", "aum-balanced", "aum-easy", "aum",
    ]  # fmt: skip
    for rule, units in zip(rules[1:], kept_by_page(page_file)[1:], strict=True):
        for unit, stops in units.items():
            for stop in stops:
                budget = {"total": stop["count"]} if unit == "bytes" else budget_of(unit, stop)
                assert_same(condense_once.select(data, rule, **budget), data, stop)


def test_other_files_keep_what_they_keep(page_file: Path) -> None:
    data, other = ranked_set(), ranked_set(prefer="hard", balanced=False)
    condense_once.report(data, page_file, compare=[other], train=False)
    for unit, stops in kept_by_page(page_file)[1].items():
        for stop in stops:
            assert_same(condense_once.resize(other, **budget_of(unit, stop)), data, stop)


def test_the_command_of_the_page_writes_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = ranked_set(counts=(5, 4, 8))
    condense_once.save(data, "my $(set) 'ranked'.safetensors")
    condense_once.report("my $(set) 'ranked'.safetensors", "page.html", train=False)
    from condense_once.cli.app import app

    for ranking in (0, 5):
        for unit, stops in kept_by_page(tmp_path / "page.html")[ranking].items():
            stop = stops[len(stops) // 2]
            _, *words = shlex.split(stop["command"])
            made = CliRunner().invoke(app, [*words, "--force"])
            assert made.exit_code == 0, (unit, made.output, made.exception)
            assert_same(condense_once.load(words[words.index("-o") + 1]), data, stop)


def page_contents(page: Path) -> dict[str, Any]:
    html = page.read_text("utf-8")
    _, _, rest = html.partition('<script type="application/json" id="data">')
    return json.loads(rest.partition("</script>")[0])


def test_the_scripts_of_the_page_pass_their_own_tests() -> None:
    tests = sorted(map(str, SCRIPT.parent.glob("*.test.js")))
    done = subprocess.run([str(NODE), "--test", *tests], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout
