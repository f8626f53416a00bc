"""The workflows: they parse, test what the project claims to support, and name only files that exist."""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_US = {"dev", "docs"}  # extras of the project's own jobs


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def jobs() -> dict[str, Any]:
    return read(ROOT / ".github/workflows/ci.yml")["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_job_has_a_machine_a_limit_and_steps(path: Path) -> None:
    content = read(path)
    assert content[True]  # YAML 1.1 reads the key "on" so
    assert content["jobs"]
    for job in content["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job)
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_files_that_a_workflow_names_exist(path: Path) -> None:
    named = re.findall(r"\b(?:tools|tests|sets)/[\w/.]+|constraints\.txt", path.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_supported_python_and_system_is_tested(jobs: dict[str, Any]) -> None:
    matrix = jobs["tests"]["strategy"]["matrix"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == supported
    systems = {*matrix["os"], *(extra["os"] for extra in matrix["include"])}
    assert systems == {"ubuntu-latest", "macos-latest", "windows-latest"}


def test_every_extra_is_tested_in_an_environment_of_its_own(jobs: dict[str, Any]) -> None:
    installed = " ".join(row["with"] for row in jobs["alone"]["strategy"]["matrix"]["include"])
    extras = {name for group in re.findall(r"\.\[([\w,]+)\]", installed) for name in group.split(",")}
    assert extras == set(PROJECT["optional-dependencies"]) - FOR_US


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_issue_forms_have_what_github_wants(path: Path) -> None:
    form = read(path)
    if path.stem == "config":
        assert set(form) <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    assert all(field["attributes"]["label"] for field in form["body"] if field["type"] != "markdown")


def test_the_citation_is_of_this_software_and_its_paper() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["title"] == PROJECT["name"]
    assert citation["preferred-citation"]["title"].startswith("You Only Condense Once")


def test_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    spec = importlib.util.spec_from_file_location("release_notes", ROOT / "tools/release_notes.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module) == (0, 1)
    with pytest.raises(SystemExit, match="has no notes of 3"):
        module.notes("# Changelog\n\n## Unreleased\n\n- New.\n", "3")


def test_a_tag_that_is_not_the_version_is_no_release() -> None:
    words = [sys.executable, str(ROOT / "tools/release_notes.py"), "99.0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not 99.0; change one of them" in done.stderr
