"""Pickles that run code, in every place where a file of another project may hold one.

The code makes a folder, the canary; nothing that the project reads may make it.
"""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from condense_once.condensed.importers import ImportOptions, import_set
from condense_once.data.open import open_source


class Call:
    """Pickled as a call."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> Any:
        return self.reduced


def text(value: str) -> bytes:
    """A string in opcodes of protocol 0."""
    return b"V" + value.encode("raw_unicode_escape") + b"\n"


def short(value: str) -> bytes:
    """A string in opcodes of protocol 4."""
    return b"\x8c" + bytes([len(value.encode())]) + value.encode()


def raw_pickles(canary: str) -> list[bytes]:
    """Every opcode that calls, builds or imports, written by hand, without the final STOP."""
    code = f"__import__('os').mkdir({canary!r})"
    name, source, shell = text(canary), text(code), text(f"mkdir {canary}")
    words = [text(word) for word in ("mkdir", canary)]
    return [
        b"cos\nmkdir\n(" + name + b"tR",  # GLOBAL, REDUCE
        b"cposix\nmkdir\n" + name + b"\x85R",  # TUPLE1
        b"(" + name + b"ios\nmkdir\n",  # INST
        b"(cos\nmkdir\n" + name + b"o",  # OBJ
        b"\x80\x04" + short("os") + short("mkdir") + b"\x93" + short(canary) + b"\x85R",  # STACK_GLOBAL
        b"\x80\x04" + short("os") + short("path.os.mkdir") + b"\x93" + short(canary) + b"\x85R",  # dotted
        b"\x80\x04" + short("pathlib") + short("Path.mkdir") + b"\x93cpathlib\nPath\n" + name + b"\x85R\x85R",
        b"cbuiltins\neval\n" + source + b"\x85R",
        b"cbuiltins\nexec\n" + source + b"\x85R",
        b"c__builtin__\neval\n" + source + b"\x85R",  # the name in Python 2
        b"cos\nsystem\n" + shell + b"\x85R",
        b"csubprocess\nPopen\n(" + b"(" + b"".join(words) + b"lt\x81",  # NEWOBJ
        b"\x80\x04csubprocess\nPopen\n((" + b"".join(words) + b"lt}\x92",  # NEWOBJ_EX
        b"csubprocess\ncheck_call\n((" + b"".join(words) + b"ltR",
        b"cos\nmkdir\nq\x07" + b"0h\x07" + name + b"\x85R",  # by way of the memo
        b"cbuiltins\ngetattr\n(cbuiltins\n__import__\n" + text("os") + b"\x85R" + words[0] + b"tR" + name + b"\x85R",
        b"cfunctools\npartial\n(cos\nmkdir\n" + name + b"tR)R",
        b"ctimeit\ntimeit\n(" + source + text("pass") + b"ctime\ntime\nI1\ntR",
        b"ccopyreg\n_reconstructor\n(cos\nmkdir\n" + name + b"NtR",
        b"cbuiltins\nlist\n(cbuiltins\nmap\n(cos\nmkdir\n(" + name + b"ltRtR",
        b"ccollections\nOrderedDict\n)R}"
        + text("__class__")
        + b"cos\nmkdir\nsb"
        + b"0cos\nmkdir\n"
        + name
        + b"\x85R",  # BUILD
        b"cnumpy.core.multiarray\n_reconstruct\n(cos\nmkdir\n" + name + b"\x85RI0\nC\x01btR",
        b"c_codecs\nencode\n(cos\nmkdir\n" + name + b"\x85R" + text("latin1") + b"tR",
        b"ctorch._utils\n_rebuild_tensor_v2\n(cos\nmkdir\n"
        + name
        + b"\x85RI0\n(I1\nt(I1\nt\x89ccollections\nOrderedDict\n)RtR",
        b"ctorch.storage\n_load_from_bytes\n" + b"B" + struct.pack("<I", 40) + bytes(40) + b"\x85R",
        b"cos\nmkdir\n" + name + b"\x85RQ",  # BINPERSID
        b"\x82\x01",  # EXT1
        b"\x97",  # NEXT_BUFFER
        b"cnumpy\nload\n" + name + b"\x85R",
        b"crunpy\nrun_path\n" + name + b"\x85R",
    ]


def objects(canary: str) -> list[Any]:
    import os
    import subprocess

    code = f"__import__('os').mkdir({canary!r})"
    return [
        Call(os.mkdir, canary),
        Call(os.system, f"mkdir {canary}"),
        Call(eval, code),
        Call(exec, code),
        Call(subprocess.call, ["mkdir", canary]),
        Call(Path.mkdir, Path(canary)),
        Call(list, state=Call(os.mkdir, canary)),
        Call(dict, [(Call(os.mkdir, canary), 1)]),
        Call(getattr, Call(__import__, "os"), "mkdir"),
    ]


def _nested(attack: Any, rng: Random) -> Any:
    """Hidden among plain data, as an importer expects it."""
    images, labels = np.zeros((2, 3, 4, 4), np.float32), np.array([0, 1])
    shapes: tuple[Callable[[], Any], ...] = (
        lambda: attack,
        lambda: [images, attack],
        lambda: (attack, labels),
        lambda: {"data": [[images, labels]], "accs_all_exps": attack},
        lambda: {"data": images, "labels": [3, attack]},
        lambda: {"images": attack, "labels": labels},
        lambda: [[[[attack]]]],
        lambda: {b"data": images, b"labels": {"a": (attack,)}},
    )
    return rng.choice(shapes)()


def malicious(canary: str, rng: Random) -> bytes:
    """A pickle that makes the canary when it is loaded by `pickle.loads`, or tries to."""
    if rng.random() < 0.5:
        return pickle.dumps(_nested(rng.choice(objects(canary)), rng), rng.randrange(6))
    raw = rng.choice(raw_pickles(canary))
    before, after = rng.choice(((b"", b""), (b"]", b"a"), (b"}I1\n", b"s"), (b"(I1\n", b"t"), (b"(", b"l")))
    return before + raw + after + b"."


def torch_zip(data: bytes, rng: Random) -> bytes:
    out = io.BytesIO()
    folder = rng.choice(("archive", "data", "a/b"))
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"{folder}/data.pkl", data)
        archive.writestr(f"{folder}/version", "3\n")
        archive.writestr(f"{folder}/byteorder", "little")
        archive.writestr(f"{folder}/data/0", bytes(400))
    return out.getvalue()


def torch_old(data: bytes, rng: Random) -> bytes:
    """The format before PyTorch 1.6: several pickles, any of which may be the malicious one."""
    parts = [pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(1001, 2), pickle.dumps({"little_endian": True}, 2)]
    parts += [pickle.dumps([1, 2], 2), pickle.dumps([], 2)]
    parts[rng.choice((3, 3, 3, 0, 1, 2, 4))] = data
    return b"".join(parts)


def npy(data: bytes) -> bytes:
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("images.npy", "labels.npy"):
            archive.writestr(name, npy(data))
    return out.getvalue()


def tar(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name in ("batches.meta", *(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


class CodeRan(Exception):
    """The canary is there."""


def attempt(folder: Path, rng: Random) -> None:
    """Give one malicious file to a reader."""
    canary = folder / "canary"
    data = malicious(str(canary), rng)
    wrap, name = rng.choice(
        (
            (lambda: torch_zip(data, rng), "a.pt"),
            (lambda: torch_zip(data, rng), "a.pth"),
            (lambda: torch_old(data, rng), "a.pt"),
            (lambda: data, "a.pt"),
            (lambda: npy(data), "a.npy"),
            (lambda: npz(data), "a.npz"),
            (lambda: tar(data), "a.tar.gz"),
        )
    )
    (folder / name).write_bytes(wrap())
    try:
        if name == "a.tar.gz" or (name == "a.npz" and rng.random() < 0.5):
            open_source(folder / name)
        else:
            import_set([folder / name], ImportOptions(factor=1, dataset="cifar10", space="pixels"))
    finally:
        (folder / name).unlink()
        if canary.exists():
            canary.rmdir()
            raise CodeRan(name)
