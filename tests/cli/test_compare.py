from __future__ import annotations

import json
from collections.abc import Callable

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
