from __future__ import annotations

import os
import pickle
import struct
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condense_once.data.unpickle import load_plain
from condense_once.errors import BadFile

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(min_size=1),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


class Command:
    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call[0], tuple(self.call[1:])


@given(PLAIN, st.integers(0, 5))
def test_reads_what_pickle_itself_reads(value: object, protocol: int) -> None:
    assert load_plain(pickle.dumps(value, protocol), "it") == value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("code", ["u1", "<i8", ">i4", "f4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_arrays_of_numbers(protocol: int, code: str, order: str) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(code, order=order)
    pair = load_plain(pickle.dumps([array, array], protocol), "it")
    assert isinstance(pair, list)
    assert np.array_equal(pair[0], array)
    assert pair[0].dtype == array.dtype
    assert pair[0] is pair[1]


def test_reads_strings_of_python_2_as_latin_1() -> None:
    # As Python 2 writes {'data': numpy.array([65, 200], 'u1')}: str is neither text nor bytes there.
    written = (
        b"\x80\x02}q\x01U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85q\x05U\x01b"
        b"q\x06\x87q\x07Rq\x08(K\x01K\x02\x85q\tcnumpy\ndtype\nq\nU\x02u1q\x0bK\x00K\x01\x87q\x0cRq\r(K\x03U\x01|q\x0eNNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0fb\x89U\x02A\xc8q\x10tq\x11bs."
    )
    content = load_plain(written, "it")
    assert isinstance(content, dict)
    assert content["data"].tolist() == [65, 200]


@pytest.mark.parametrize("protocol", range(6))
def test_runs_nothing(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "was-here"
    attack = pickle.dumps({"data": Command(os.system, f"touch {target}")}, protocol)
    with pytest.raises(BadFile, match=r"^it would run code \((posix|nt)\.system\); refused\.$"):
        load_plain(attack, "it")
    assert not target.exists()
    pickle.loads(attack)  # the attack is a real one
    assert target.exists()


@pytest.mark.parametrize(
    "attack",
    [
        b"(S'echo'\nios\nsystem\n.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct\n)R.",
        b"c\x1b[31mos\nsystem\n.",
        b"\x82\x01.",  # an extension code
        b"Pid\n.",  # a persistent id
        b"S'\\e'\n.",  # an escape that is none
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        pickle.dumps(np.array([{"a": 1}], object)),
        pickle.dumps(np.zeros(2, "f4,i4")),
    ],
)
def test_refuses_everything_that_is_not_plain_data(attack: bytes) -> None:
    with pytest.raises(BadFile) as error:
        load_plain(attack, "it")
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x02}" + b")" + b"\x85" * 10**5 + b"Ns.",  # nested tuples as a key: a crash of CPython's own unpickler
        b"\x80\x02]" * 10**5 + b".",
        b"\x80\x02Nr\xff\xff\xff\x7fN.",  # a memo of two thousand million places
        b"N" + b"p2147483647\n" + b"N.",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"ab.",
        b"\x80\x02T\xff\xff\xff\x7fab.",
        b"\x80\x04\x95" + struct.pack("<Q", 2**63 - 1) + b"N.N",
        pickle.dumps(np.zeros(10, "u1"), 2).replace(b"K\n\x85", b"J\xff\xff\xff\x7f\x85"),
    ],
    ids=range(8),
)
def test_bombs_neither_crash_nor_fill_memory(bomb: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(BadFile):
        load_plain(bomb, "it")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * len(bomb) + 1_000_000


def test_text_is_not_copied_to_bytes_for_ever() -> None:
    text = "x" * 100_000
    copies = b"q\x01c_codecs\nencode\nq\x02h\x01X\x06\x00\x00\x00latin1q\x03\x86R" + b"h\x02h\x01h\x03\x86R" * 1000
    with pytest.raises(BadFile):
        load_plain(b"\x80\x02(X" + struct.pack("<I", len(text)) + text.encode() + copies + b"t.", "it")


def test_what_follows_the_pickle_is_an_error() -> None:
    with pytest.raises(BadFile, match="3 bytes follow its pickle"):
        load_plain(pickle.dumps([1]) + b"...", "it")


@given(st.data())
def test_damage_is_a_clear_error_or_plain_data(damaged, data: st.DataObject) -> None:
    whole = pickle.dumps({"data": np.arange(6, dtype=np.uint8), "labels": [1, 2], "names": ["a", "b"], "b": b"x"}, 2)
    modules = set(sys.modules)
    with suppress(BadFile):
        load_plain(data.draw(damaged(whole)), "it")
    assert set(sys.modules) == modules
