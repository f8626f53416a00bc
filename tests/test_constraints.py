"""`constraints.txt` pins what `make test` installs: all of it, to the version that is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

FILE = Path(__file__).parents[1] / "constraints.txt"


def pins() -> dict[str, str]:
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def installed(name: str, extras: frozenset[str], found: dict[str, str]) -> dict[str, str]:
    """The versions of a distribution's requirements, and of theirs."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        wanted = requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in extras | {""})
        inner, key = frozenset(requirement.extras), canonicalize_name(requirement.name)
        if not wanted or (key in found and not inner):
            continue
        found[key] = Version(distribution(key).version).public
        installed(key, inner, found)
    return found


def test_every_package_that_the_tests_need_is_pinned_to_what_is_installed() -> None:
    try:
        found = installed("condense-once", frozenset({"dev"}), {})
    except PackageNotFoundError as error:
        pytest.skip(f"{error} is not installed")
    found.pop("condense-once", None)
    assert len(found) > 30
    assert {name: version for name, version in found.items() if pins().get(name) != version} == {}


def test_only_versions_are_pinned_and_no_hosts_are_named() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--" not in text
    assert all(version and Version(version) for version in pins().values())
