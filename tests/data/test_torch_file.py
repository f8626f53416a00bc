from __future__ import annotations

import io
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from condense_once.data.torch_file import StoredTensor, load_torch
from condense_once.errors import BadFile

X = torch.arange(48.0).reshape(4, 3, 2, 2)
Z = torch.view_as_complex(torch.arange(8.0).reshape(4, 2))
formats = pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "before 1.6"])


def saved(path: Path, value: object, is_zip: bool = True) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=is_zip)
    return path


@formats
@pytest.mark.parametrize(
    "tensor",
    [
        *(X, X.permute(0, 2, 3, 1), X[1:, ::2], X[:1].expand(4, 3, 2, 2), torch.zeros(0), torch.tensor(3)),
        *(X.double(), X.half(), X.long(), X.to(torch.uint8), X.to(torch.uint16), X > 3, torch.nn.Parameter(X)),
        *(Z, Z.conj().imag),
    ],
)
def test_tensors_are_read_as_pytorch_reads_them(tmp_path: Path, tensor: torch.Tensor, is_zip: bool) -> None:
    read = load_torch(saved(tmp_path / "x.pt", {"it": [tensor]}, is_zip))["it"][0]
    expected = tensor.detach().resolve_conj().resolve_neg().numpy()
    assert (read.shape, read.ndim) == (expected.shape, expected.ndim)
    np.testing.assert_array_equal(read.read(), expected, strict=True)


@formats
def test_bfloat16_becomes_float32(tmp_path: Path, is_zip: bool) -> None:
    read = load_torch(saved(tmp_path / "x.pt", X.bfloat16() / 3, is_zip))
    np.testing.assert_array_equal(read.read(), (X.bfloat16() / 3).float().numpy(), strict=True)


@formats
def test_tensors_with_attributes_and_state_dicts_are_read(tmp_path: Path, is_zip: bool) -> None:
    marked = X.clone()
    marked.note = "mine"  # type: ignore[attr-defined]
    assert load_torch(saved(tmp_path / "x.pt", marked, is_zip)).shape == (4, 3, 2, 2)
    state = load_torch(saved(tmp_path / "x.pt", torch.nn.Linear(2, 3).state_dict(), is_zip))
    assert {name: tensor.shape for name, tensor in state.items()} == {"weight": (3, 2), "bias": (3,)}


@formats
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (X.to_sparse(), "_rebuild_sparse_tensor, but only plain dense tensors"),
        (torch.empty(3, device="meta"), "only plain dense tensors"),
        (torch.nn.Linear(2, 3), "torch.nn.modules.linear.Linear, but only plain dense"),
        (print, "would run code"),
    ],
)
def test_other_objects_are_refused_by_name(tmp_path: Path, value: object, complaint: str, is_zip: bool) -> None:
    with pytest.raises(BadFile, match=complaint):
        load_torch(saved(tmp_path / "x.pt", value, is_zip))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_refused(tmp_path: Path) -> None:
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    with pytest.raises(BadFile, match="only plain dense tensors"):
        load_torch(saved(tmp_path / "x.pt", nested))


@formats
def test_a_few_stored_values_do_not_become_gigabytes(tmp_path: Path, is_zip: bool) -> None:
    path = saved(tmp_path / "x.pt", torch.zeros(1, 3, 1, 1).expand(1 << 20, 3, 64, 64), is_zip)
    tracemalloc.start()
    with pytest.raises(BadFile, match=r"repeats the 12 bytes stored for it; save it with `\.clone\(\)`"):
        load_torch(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_a_compressed_file_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.pt", X)
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(tmp_path / "y.pt", "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            after.writestr(name, before.read(name))
    with pytest.raises(BadFile, match="compressed, which PyTorch files never are"):
        load_torch(tmp_path / "y.pt")


class Call:
    """Pickles as a call of a global, with a persistent id for each storage."""

    def __init__(self, *arguments: object, function: Any = torch._utils._rebuild_tensor_v2) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        return value if isinstance(value, tuple) and value[:1] == ("storage",) else None


def forged(path: Path, value: object, stored: bytes = bytes(16)) -> Path:
    """A zip as PyTorch writes it, around any pickle and one storage."""
    index = io.BytesIO()
    _Pickler(index, 2).dump(value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", index.getvalue())
        archive.writestr("x/data/0", stored)
    return path


FLOATS = ("storage", torch.FloatStorage, "0", "cpu", 4)


@pytest.mark.parametrize(
    "value",
    [
        Call(("storage", torch.FloatStorage, "0", "cpu", 2**40), 0, (2**40,), (1,), False, {}),  # more than is there
        Call(("storage", torch.FloatStorage, "0", "cpu", -4), 0, (4,), (1,), False, {}),
        Call(("storage", torch.FloatStorage, "7", "cpu", 4), 0, (4,), (1,), False, {}),  # no such storage
        Call(("storage", int, "0", "cpu", 4), 0, (4,), (1,), False, {}),
        Call(FLOATS, 2, (4,), (1,), False, {}),  # beyond the end
        Call(FLOATS, 3, (4,), (-1,), False, {}),
        Call(FLOATS, -1, (4,), (1,), False, {}),
        Call(FLOATS, 0, (4,), (2**62,), False, {}),
        Call(FLOATS, 0, (2**62, 2**62), (0, 0), False, {}),
        Call(FLOATS, 0, (4, 1), (1,), False, {}),
        Call(FLOATS, 0, ("4",), (1,), False, {}),
        Call(FLOATS, 0, (1,) * 99, (1,) * 99, False, {}),
        Call(FLOATS),
        Call("rot13", "latin1", function=str.encode),
        {(1, 2): 3},
    ],
)
def test_forged_files_are_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(BadFile):
        load_torch(forged(tmp_path / "x.pt", value))


def test_text_in_an_unknown_encoding_is_refused(tmp_path: Path) -> None:
    path = forged(tmp_path / "x.pt", [])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x04\x00\x00\x00nope\x86R.")
    with pytest.raises(BadFile, match="damaged"):
        load_torch(path)


def test_tensors_that_only_an_old_file_declares_are_not_allocated(tmp_path: Path) -> None:
    raw = saved(tmp_path / "x.pt", torch.zeros(1000), is_zip=False).read_bytes()
    (tmp_path / "x.pt").write_bytes(raw.replace(b"M\xe8\x03", b"J" + struct.pack("<i", 2**31 - 1)))
    with pytest.raises(BadFile, match="larger than the file"):
        load_torch(tmp_path / "x.pt")
    (tmp_path / "x.pt").write_bytes(raw[:-1])
    with pytest.raises(BadFile, match="does not have the size"):
        load_torch(tmp_path / "x.pt")
    (tmp_path / "x.pt").write_bytes(raw + b"more")
    with pytest.raises(BadFile, match="4 bytes follow"):
        load_torch(tmp_path / "x.pt")


def test_plain_pickles_of_arrays_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"images": np.ones((2, 3)), "acc": np.float64(0.5)}))
    read = load_torch(tmp_path / "x.pkl")
    assert (read["images"].shape, read["acc"]) == ((2, 3), 0.5)


def test_values_are_copied_only_when_they_are_asked_for(tmp_path: Path) -> None:
    calls = [Call(FLOATS, 0, (4,), (1,), False, {}) for _ in range(3)]
    read = load_torch(forged(tmp_path / "x.pt", calls, np.arange(4, dtype="<f4").tobytes()))
    assert all(isinstance(one, StoredTensor) for one in read)
    assert read[1].read().tolist() == [0, 1, 2, 3]
