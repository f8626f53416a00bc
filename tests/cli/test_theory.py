from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
SHORT = ("--net", "convnet-d1-w4", "--epoch", 0, "--epoch", 1, "--runs", 2, "--compile", "off")


def test_a_claim_is_measured_and_written(run: Run) -> None:
    words = ("theory", "leave-one-out", "cifar10-idc-ipc10", "--patches", 10, *SHORT)
    code, out, err = run(*words, "-o", "lemma.md", "-o", "lemma.svg")
    assert code == 0
    assert "cross-entropy" in out
    assert "The smaller the LBPE of a patch" in err
    assert "± " in Path("lemma.md").read_text()
    assert "<svg" in Path("lemma.svg").read_text()
    records = json.loads(run(*words, "--json")[1])["records"]
    assert [record["run"] for record in records] == [0] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("lemma-1", "cifar10-idc-ipc10"), "There is no 'lemma-1'"),
        (("rademacher", "cifar10-idc-ipc10", "--real", "cifar10-sample"), "--real is for alignment"),
        (("alignment", "cifar10-idc-ipc10", "-o", "found.pdf"), "choose another suffix"),
        (("alignment", "cifar10-idc-ipc10", "--share", "0.7"), "--share must be above 0 and at most 0.5"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(run: Run, words: tuple[str, ...], complaint: str) -> None:
    code, _, err = run("theory", *words)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1
