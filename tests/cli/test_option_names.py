from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from condense_once.cli.app import VERBS, load_verb
from condense_once.cli.option_names import options_of, with_options

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *words: monkeypatch.setattr(sys, "argv", ["condense-once", *words])


def test_parameters_are_shown_as_the_options_of_the_command(typed: Callable[..., None]) -> None:
    typed("import", "--force", "data.pt")
    assert with_options("Pass `zca_method` or `format_name`.") == "Pass --zca-method or --format."
    typed("data", "info", ".")
    assert with_options("Pass `size`, not `zca_method`.") == "Pass --size, not zca_method."
    typed("study", "table1")
    assert with_options("`compilation` must be auto.") == "--compile must be auto."


def test_an_option_is_also_known_by_its_own_name(typed: Callable[..., None]) -> None:
    typed("resize", BUNDLED)
    assert with_options("`bytes` and `max_bytes` are one.") == "--bytes and --bytes are one."


@pytest.mark.parametrize("words", [(), ("frobnicate",), ("data",), ("data", "frobnicate"), ("--version",)])
def test_without_a_command_names_only_lose_their_backticks(typed: Callable[..., None], words: tuple[str, ...]) -> None:
    typed(*words)
    assert with_options("`ipc` must be positive.") == "ipc must be positive."


def test_other_text_in_backticks_stays(typed: Callable[..., None]) -> None:
    typed("data", "get", "cifar10")
    for text in ("Trying `npm pack x@1.0`.", "a ` b ` c", "`A`", "``", "no backticks"):
        assert with_options(text) == text


def test_arguments_are_no_options() -> None:
    assert "file" not in options_of(["info", BUNDLED])
    assert options_of(["info", BUNDLED])["as_json"] == "--json"


def test_errors_and_notes_of_the_library_name_options(run: Run, tmp_path: Path) -> None:
    Path("sheet.png").write_text("precious")
    assert "pass --force to replace it" in run("show", BUNDLED, "-o", "sheet.png")[2]
    assert "pass --columns for more" in run("show", BUNDLED, "-o", "other.png")[2]
    np.savez("a.npz", images=np.zeros((2, 3, 4, 4), np.uint8), labels=np.arange(2))
    _, _, err = run("import", "a.npz", "-o", "a.safetensors")
    assert err == (
        "error: a.npz lacks information that is needed to use it; pass --factor (1 for plain images, 2 for IDC's CIFAR sets, 3"
        " for its ImageNet sets), --dataset (or --mean and --std).\n"
    )


def test_a_source_that_is_not_here_comes_with_the_command_to_get_it(run: Run, tmp_path: Path) -> None:
    code, _, err = run("data", "info", "cifar10", "--data-dir", tmp_path / "none")
    assert (code, err.splitlines()) == (
        2,
        ["error: cifar10 is not on this machine; download it.", "next: condense-once data get cifar10"],
    )


@pytest.mark.parametrize("name", VERBS)
def test_the_list_of_verbs_shows_the_first_line_of_each_help(name: str) -> None:
    command = load_verb(name)
    assert command.help.split("\n\n")[0].replace("\n", " ") == VERBS[name].summary
