"""Files of ours with valid checksums and absurd headers: what a malicious author writes, not what a disk does."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from random import Random
from typing import Any

from tests.attacks.targets import Content, Target, digest, make_layered_set, read_set, save, tiny_set

from condense_once.condensed.bundled import load
from condense_once.condensed.subset import resize

ABSURD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 16, 17, 4096, 65536, 2**31, 2**53, 2**62, 2**64, 10**30, 10**400, 0.5, -0.0),
    *(1e308, 5e-324, "", "x", "\x1b[31m", "a\nb", "ß" * 5000, "U8", "F16", "F32", "zca", "normalised", "pixels"),
    *([], {}, [1], [1e308] * 3, [0.0] * 3, ["a"] * 3, [[]], {"": 0}, [3, 2**31, 2**31], [1, 1, 1], list(range(5000))),
)


def deep(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def forge(tree: Any, rng: Random) -> Any:
    """The same JSON with one value replaced, removed, moved or nested."""
    at, key = tree, None
    while isinstance(at, dict | list) and at:
        parent = at
        key = rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
        at = at[key]
        if rng.random() < 0.4:
            break
    if key is None:
        return tree
    match rng.randrange(8):
        case 0:
            del parent[key]
        case 1:
            parent[key] = deep(rng.choice((3, 50, 400)))
        case 2 if isinstance(parent, list):
            parent.extend([parent[key]] * rng.choice((1, 1000)))
        case 3 if isinstance(at, int | float) and not isinstance(at, bool):
            parent[key] = rng.choice((at + 1, at - 1, at * 2, at * 4096, -at))
        case 4 if isinstance(parent, dict):
            parent[rng.choice(("extra", "scores/x", "", *parent))] = parent.pop(key)
        case _:
            parent[key] = rng.choice(ABSURD)
    return tree


def forged(raw: bytes, key: str, rng: Random) -> bytes:
    """A container with absurdities in its header, in that of its tensors or in ours inside it; checksums are right."""
    length = int.from_bytes(raw[:8], "little")
    outer, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.75:
            inner = forge(json.loads(outer["__metadata__"][key]), rng)
            text = json.dumps(inner, ensure_ascii=False)
            outer["__metadata__"] |= {key: text, "condense_once.crc32": f"{zlib.crc32(text.encode()):08x}"}
        else:
            tensors = {name: value for name, value in outer.items() if name != "__metadata__"}
            outer = {"__metadata__": outer["__metadata__"], **forge(tensors, rng)}
    text = json.dumps(outer, ensure_ascii=False)
    packed = text.encode()
    return len(packed).to_bytes(8, "little") + packed + data


def _read_forged_set(folder: Path) -> Content:
    content = read_set(folder)
    data = load(folder / "a.safetensors")
    for budget in ({"total": 2}, {"bytes": "6KB"}, {"classes": [data.classes[0]]}):
        resize(folder / "a.safetensors", **budget)  # type: ignore[arg-type]
    return content


def _read_forged_checkpoint(folder: Path) -> Content:
    """Write what there is of its run."""
    from tests.attacks.targets import tiny_source

    from condense_once.condensing.runner import condense
    from condense_once.train.compute_config import ComputeConfig

    made = condense(
        tiny_source(),
        method="dm",
        **RUN,
        checkpoint=folder / "a.checkpoint",
        resume=True,
        minutes=0,
        compute=ComputeConfig("float32", "off"),
    )
    return {"set": digest(made.cells)}


RUN: dict[str, Any] = {
    "ipc": 1,
    "factor": 1,
    "net": "convnet-d1-w8",
    "overrides": {"iterations": 2, "real_batch": 4},
}


class _Off(BaseException):
    """Ends a run like a machine that is switched off."""


def _make_real_checkpoint(folder: Path) -> None:
    from tests.attacks.targets import tiny_source

    from condense_once.condensing.callbacks import Callback, RunProgress
    from condense_once.condensing.runner import condense
    from condense_once.train.compute_config import ComputeConfig

    class SwitchOff(Callback):
        def on_checkpoint(self, progress: RunProgress) -> None:
            raise _Off

    try:
        condense(
            tiny_source(),
            method="dm",
            **RUN,
            checkpoint=folder / "a.checkpoint",
            save_every=0.0,
            compute=ComputeConfig("float32", "off"),
            callbacks=[SwitchOff()],
        )
    except _Off:
        return
    raise AssertionError("the run ended before its first checkpoint")


FORGERIES = {  # by name: the target, and the key of its header
    "forged set": (
        Target("forged set", lambda folder: save(tiny_set(), folder / "a.safetensors"), _read_forged_set),
        "condense_once",
    ),
    "forged layered set": (Target("forged layered set", make_layered_set, _read_forged_set), "condense_once"),
    "forged checkpoint": (
        Target("forged checkpoint", _make_real_checkpoint, _read_forged_checkpoint),
        "condense_once.checkpoint",
    ),
}
