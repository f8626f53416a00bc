"""Checksums of the rows of a store, so that a result that changed on the disk is noticed and measured again."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

ITEM = 8  # bytes of a row number in a selection


def digest_of(table: str, row: Sequence[Any]) -> str:
    """The digest of a row: of the name of its table, its key and all other columns.

    >>> digest_of("claims", ["a", 1.0, None]) == digest_of("claims", ["a", 1, None])
    True
    """
    digest = hashlib.sha256(table.encode())
    for value in row:
        kind, content = _encoded(value)
        digest.update(struct.pack("<cQ", kind, len(content)))
        digest.update(content)
    return digest.hexdigest()[:32]


def is_well_formed(table: str, row: Sequence[Any]) -> bool:
    """Whether a row from before there were digests can be read; all that can be checked of one."""
    try:
        return _CHECKS[table](*row[1:])
    except (ValueError, TypeError, KeyError, RecursionError, zipfile.BadZipFile, EOFError, NotImplementedError):
        return False


def _encoded(value: Any) -> tuple[bytes, bytes]:
    if value is None:
        return b"0", b""
    if isinstance(value, bytes):
        return b"b", value
    if isinstance(value, str):
        return b"t", value.encode("utf-8", "surrogateescape")
    return b"r", struct.pack("<d", value)  # sqlite has one kind of number per column


def _is_study(spec: str, updated: str) -> bool:
    fields = _object(spec)
    study, home = fields["study"], fields["home"]
    named = all(isinstance(study[name], str) for name in ("name", "protocol"))
    return named and _are_texts(study["sets"]) and isinstance(home, str | None) and isinstance(updated, str)


def _is_selection(facts: str, rows: bytes | None, evaluation: str | None, error: str | None) -> bool:
    _object(facts)
    if error is not None:
        return isinstance(error, str)
    return isinstance(rows, bytes) and len(rows) % ITEM == 0 and isinstance(evaluation, str)


def _is_evaluation(facts: str, result: str | None, error: str | None, work: float, seconds: float, made: str) -> bool:
    _object(facts)
    if not _is_timed(work, seconds, made) or error is not None:
        return isinstance(error, str)
    found = _object(str(result))
    return (
        0 <= found["accuracy"] <= 1
        and isinstance(found["test"], str)
        and isinstance(found["test_images"], int)
        and isinstance(found["machine"]["processor"], str)
        and isinstance(found["versions"], dict)
    )


def _is_scoring_run(
    facts: str, content: bytes | None, error: str | None, work: float, seconds: float, made: str
) -> bool:
    epochs = _object(facts)["training"]
    if not _is_timed(work, seconds, made) or error is not None:
        return isinstance(error, str)
    if not isinstance(content, bytes) or not isinstance(epochs, int):
        return False
    with zipfile.ZipFile(io.BytesIO(content)) as archive:  # an npz archive has checksums of its own
        return archive.testzip() is None


_CHECKS: Mapping[str, Callable[..., bool]] = {
    "studies": _is_study,
    "selections": _is_selection,
    "evaluations": _is_evaluation,
    "evidence": _is_scoring_run,
}


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("not a JSON object")
    return value


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_timed(work: Any, seconds: Any, made: Any) -> bool:
    return all(isinstance(n, int | float) and isfinite(n) for n in (work, seconds)) and isinstance(made, str)
