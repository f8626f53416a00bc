"""The public names: everything that a public function takes or returns can be had from `condense_once`."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any

import pytest

import condense_once
from condense_once.registry import Registry


def public_functions() -> list[str]:
    return [name for name in condense_once.__all__ if inspect.isfunction(getattr(condense_once, name))]


def types_in(annotation: Any) -> Iterator[type]:
    """Our classes in an annotation, however deep."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    for inner in typing.get_args(annotation):
        for each in inner if isinstance(inner, list) else [inner]:
            yield from types_in(each)


def hints(function: Any) -> dict[str, Any]:
    """With the names that are imported for type checkers only."""
    module = sys.modules[function.__module__]
    names = {name: getattr(condense_once, name) for name in condense_once.__all__}
    from condense_once.nets import NetChoice

    names |= {"NetChoice": NetChoice, **vars(module)}
    return typing.get_type_hints(function, globalns=names)


@pytest.mark.parametrize("name", public_functions())
def test_every_type_of_a_public_function_is_public(name: str) -> None:
    ours = {
        each.__name__
        for annotation in hints(getattr(condense_once, name)).values()
        for each in types_in(annotation)
        if each.__module__.startswith("condense_once.")
    }
    assert ours <= set(condense_once.__all__)


def test_every_name_is_there_and_documented() -> None:
    for name in condense_once.__all__:
        found = getattr(condense_once, name)
        if not isinstance(found, Registry):
            assert inspect.getdoc(found), name


def test_the_registries_are_public() -> None:
    found = {name for name in condense_once.__all__ if isinstance(getattr(condense_once, name), Registry)}
    assert found == {
        *(
            "CONDENSERS",
            "EXPORTERS",
            "FORMATS",
            "METRICS",
            "NETS",
            "PRESETS",
            "PROTOCOLS",
            "RULES",
            "SELECTORS",
            "SETS",
        ),
        *("SOURCES", "STUDIES"),
    }


def test_importing_the_package_loads_nothing_else() -> None:
    """No torch, no numpy, and none of our own modules but the version and what finds the names."""
    program = (
        "import sys, condense_once\n"
        "print(*sorted(m for m in sys.modules if m.partition('.')[0] in ('condense_once', 'numpy', 'torch')))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["condense_once", "condense_once._version", "condense_once.lazy"]


def test_a_name_stays_a_function_after_its_package_is_imported() -> None:
    program = (
        "import condense_once.selection.select, condense_once as c; print(callable(c.select), callable(c.evaluate))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["True", "True"]
