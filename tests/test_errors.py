from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.importers import import_set
from condense_once.data.open import MissingSource, open_source
from condense_once.errors import (
    BadFile,
    BadOption,
    CondenseOnceError,
    InaccessibleFile,
    MissingExtra,
    MissingFile,
    UnknownName,
)
from condense_once.files import atomic_file, existing_file
from condense_once.registry import Registry


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (BadFile("damaged."), ValueError),
        (MissingFile("missing."), FileNotFoundError),
        (MissingFile("missing."), BadFile),
        (InaccessibleFile("denied."), OSError),
        (BadOption("invalid."), ValueError),
        (UnknownName("unknown."), LookupError),
        (MissingExtra("Drawing", "figures"), ImportError),
    ],
)
def test_errors_are_builtin_errors_too_and_survive_pickling(error: CondenseOnceError, builtin: type[Exception]) -> None:
    assert isinstance(error, builtin)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_a_missing_extra_names_itself() -> None:
    assert str(MissingExtra("Drawing", "figures")).startswith("Drawing needs an optional dependency: install")
    assert "'.[figures]'" in str(MissingExtra("Drawing", "figures"))


def test_a_damaged_file_is_no_os_error() -> None:
    assert not isinstance(BadFile("damaged."), OSError)
    assert not isinstance(UnknownName("unknown."), KeyError)  # whose text is in quotes


def test_missing_files_are_file_not_found_errors_with_their_own_sentence(tmp_path: Path) -> None:
    path = tmp_path / "none.pt"
    for read in (existing_file, load, open_source, lambda path: import_set([path])):
        with pytest.raises(FileNotFoundError) as caught:
            read(path)
        assert isinstance(caught.value, MissingFile)
        assert str(caught.value).startswith("There is no file")
        assert "cannot be read" not in str(caught.value)


def test_a_source_that_is_not_here_can_be_told_from_a_typing_error(tmp_path: Path) -> None:
    with pytest.raises(MissingSource) as caught:
        open_source("cifar10", data_dir=tmp_path)
    assert caught.value.download == "cifar10"
    with pytest.raises(MissingSource) as caught:
        open_source("imagenet10", data_dir=tmp_path)
    assert caught.value.download is None
    with pytest.raises(LookupError):
        open_source("cifar11", data_dir=tmp_path)


def test_damage_is_a_value_error_and_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\3\4" + bytes(30))
    with pytest.raises(ValueError, match="damaged") as caught:
        open_source(tmp_path / "a.npz")
    assert str(caught.value).count("damaged") == 1


def test_an_existing_output_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("precious")
    with pytest.raises(ValueError, match="pass `force`"), atomic_file(tmp_path / "a"):
        pass


def test_unknown_names_are_lookup_errors() -> None:
    with pytest.raises(LookupError, match="There is no 'x' among the sets"):
        Registry("sets").get("x")
