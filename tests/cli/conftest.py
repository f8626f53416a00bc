from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condense_once.cli import main
from condense_once.train import cost

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def no_long_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MEASURE", 0.0)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Type a command in an empty folder; get exit code, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def typed(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["condense-once", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return int(end.value.code or 0), printed.out, printed.err

    return typed
