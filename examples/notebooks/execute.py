"""Execute the notebooks of this folder and keep their outputs: `python -m examples.notebooks.execute [name …]`."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
LONGEST_CELL = 300  # seconds, on a busy machine


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def executed(notebook: Any) -> Any:
    """A copy of a notebook with the outputs of a new kernel, started in this folder; a cell that fails raises its error."""
    fresh = copy.deepcopy(notebook)
    for cell in fresh.cells:
        cell.metadata = {}
    resources = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(
        fresh,
        timeout=LONGEST_CELL,
        kernel_name="python3",
        resources=resources,
        record_timing=False,
        coalesce_streams=True,  # else what is one output depends on the kernel's timing
    )
    client.execute()
    for output in (output for cell in fresh.cells for output in cell.get("outputs", ())):
        if "image/png" in output.get("data", ()):
            output.data.pop("image/jpeg", None)  # the same picture once more
    fresh.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return fresh


def kinds(cell: Any) -> list[list[str]]:
    """What a code cell put out, without the contents: streams and media types.

    >>> cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("stream", name="stdout", text="36.2")])
    >>> kinds(cell)
    [['stdout']]
    """
    return [sorted(output.data) if "data" in output else [output.get("name", "error")] for output in cell.outputs]


def main(names: list[str]) -> None:
    for path in notebooks():
        if not names or path.stem in names:
            print(path.name, flush=True)
            nbformat.write(executed(read(path)), path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])
