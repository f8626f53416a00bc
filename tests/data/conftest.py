"""Damage of every kind, and what must hold of a source whatever it was read from."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import strategies as st

from condense_once.data.source import Source
from condense_once.errors import BadFile, BadOption

Damage = Callable[[bytes], st.SearchStrategy[bytes]]
Outcome = Callable[[Callable[[], Source]], Source | None]


@pytest.fixture(scope="session")
def damaged() -> Damage:
    """Of some bytes, all the ways to flip, cut, repeat and overwrite a few of them."""

    def edits(raw: bytes) -> st.SearchStrategy[bytes]:
        place = st.integers(0, min(len(raw), 120) - 1) | st.integers(0, len(raw) - 1)
        flip = st.builds(
            lambda at, bits: lambda b: b[:at] + bytes([b[at] ^ bits]) + b[at + 1 :], place, st.integers(1, 255)
        )
        write = st.builds(
            lambda at, new: lambda b: b[:at] + new + b[at + len(new) :],
            place,
            st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f"])
            | st.binary(min_size=1, max_size=8),
        )
        cut = st.builds(lambda at: lambda b: b[:at], place)
        drop = st.builds(lambda at, n: lambda b: b[:at] + b[at + n :], place, st.integers(1, 16))
        repeat = st.builds(lambda at, n: lambda b: b[: at + n] + b[at:], place, st.integers(1, 16))
        return st.lists(flip | write | cut | drop | repeat, min_size=1, max_size=3).map(
            lambda steps: _apply(raw, steps)
        )

    return edits


def _apply(raw: bytes, steps: list[Callable[[bytes], bytes]]) -> bytes:
    for step in steps:
        with suppress(IndexError):  # behind an earlier cut
            raw = step(raw)
    return raw


@pytest.fixture(scope="session")
def outcome() -> Outcome:
    """The source that a reader gives, with all that must hold of it; None if it gave one clear sentence instead."""

    def run(read: Callable[[], Source]) -> Source | None:
        try:
            source = read()
            for split in source.splits.values():
                images = split.take(slice(None))
                assert images.dtype == np.uint8
                assert images.shape == (len(split.labels), *split.shape)
                assert split.labels.dtype == np.int64
                assert 0 <= split.labels.min() <= split.labels.max() < len(source.classes)
                assert len(source.mean) == len(source.std) == split.shape[0]
            assert all(map(math.isfinite, source.mean + source.std))
        except (BadFile, BadOption) as error:
            sentence = str(error)
            assert len(sentence) > 20
            assert "\n" not in sentence
            return None
        return source

    return run


@pytest.fixture(scope="session")
def same() -> Callable[[Source, Source], bool]:
    """Whether two sources hold the same images under the same labels."""

    def compare(one: Source, two: Source) -> bool:
        return (
            one.classes == two.classes
            and list(one.splits) == list(two.splits)
            and all(
                np.array_equal(a.labels, b.labels) and np.array_equal(a.take(slice(None)), b.take(slice(None)))
                for a, b in zip(one.splits.values(), two.splits.values(), strict=True)
            )
        )

    return compare
