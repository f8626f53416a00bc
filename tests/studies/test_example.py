"""The study in Python that the documentation shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from condense_once.condensed.file import save
from condense_once.data.arrays import save_arrays
from condense_once.studies.grid import Subject

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "studies.md"
SMALL = 'protocol="quick", repeats=1, nets=("convnet-d1-w8",), scored_by="convnet-d1-w8", test="test.npz"'


def test_a_study_in_python_prints_its_table(subjects: dict[str, Subject], tmp_path: Path) -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", DOCUMENTATION.read_text(encoding="utf-8"), re.DOTALL)
    save(subjects["tiny"].data, tmp_path / "my.safetensors")
    save_arrays(subjects["tiny"].test, tmp_path / "test.npz")
    (tmp_path / "example.py").write_text(shown.replace('protocol="quick"', SMALL))
    words = [sys.executable, "example.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[:3] == ["## Two rules", "", "| set | size | yoco | random | evaluated in |"]
    assert "Scored by 1 training of 100 epochs of convnet-d1-w8" in ended.stdout
