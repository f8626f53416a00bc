from __future__ import annotations

import json
from collections.abc import Callable

import pytest

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"


def test_two_orders_are_compared_at_each_size(run: Run) -> None:
    run("rank", BUNDLED, "--metric", "random", "-o", "a.safetensors")
    run("rank", BUNDLED, "--metric", "random", "--unbalanced", "--prefer", "hard", "-o", "b.safetensors")
    code, out, _ = run("compare", "a.safetensors", "b.safetensors")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:-1]] == [["1", "40"], ["2", "80"], ["5", "200"]]
    assert "(Spearman): -0." in out.splitlines()[-1]
    code, out, _ = run("compare", "a.safetensors", "b.safetensors", "--json")
    told = json.loads(out)
    assert [size["ipc"] for size in told["sizes"]] == [1, 2, 5]
    assert sum(told["sizes"][0]["counts"][1]) == 40
    assert told["correlation"] < -0.9


def test_what_cannot_be_compared_is_refused(run: Run) -> None:
    run("rank", BUNDLED, "--metric", "random", "-o", "a.safetensors")
    run("resize", "a.safetensors", "--ipc", 1, "-o", "small.safetensors")
    for other, complaint in ((BUNDLED, "not ranked"), ("small.safetensors", "not rankings of the same patches")):
        code, out, err = run("compare", "a.safetensors", other)
        assert (code, out) == (2, "")
        assert complaint in err


def test_two_rules_are_compared_on_one_file(run: Run) -> None:
    code, out, _ = run("compare", "cifar10-idc-ipc10", "--rule", "yoco", "--rule", "lbpe-hard-balanced")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[1:-1]] == [
        ["1", "40", "0"],
        ["2", "80", "0"],
        ["5", "200", "0"],
    ]
    assert "(Spearman): -0.99" in out.splitlines()[-1]
    told = json.loads(run("compare", "cifar10-idc-ipc10", "--rule", "yoco", "--rule", "lbpe-auto", "--json")[1])
    assert (told["one"], told["other"], told["correlation"]) == ("yoco", "lbpe-auto", None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "of two files, or of two rules (--rule A --rule B) on one file"),
        (("--rule", "yoco"), "of two files, or of two rules"),
        (("cifar10-idc-ipc10", "--rule", "yoco", "--rule", "lbpe"), "of two files, or of two rules"),
        (("--rule", "yoco", "--rule", "el2n"), "no scores by 'el2n', which the rule 'el2n' reads; score it first"),
        (("--rule", "yoco", "--rule", "ssp"), "reads features, which are not stored"),
        (("--rule", "yoco", "--rule", "yocco"), "There is no rule 'yocco'; did you mean 'yoco'"),
    ],
)
def test_what_is_no_pair_of_rules_is_refused(run: Run, words: tuple[str, ...], complaint: str) -> None:
    code, out, err = run("compare", "cifar10-idc-ipc10", *words)
    assert (code, out) == (2, "")
    assert complaint in err
