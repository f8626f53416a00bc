"""A figure of a study as a file."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condense_once.errors import BadOption, MissingExtra
from condense_once.files import atomic_file, refuse_existing
from condense_once.studies.figures.drawing import DRAWINGS, Material
from condense_once.studies.figures.style import GREY, RC
from condense_once.studies.grid import Subject
from condense_once.studies.run import State
from condense_once.studies.store import Store
from condense_once.studies.study import Study

DOTS = 160  # an inch, in PNG files
CAPTION = 140  # characters a line
# What would differ between two files of the same figure.
METADATA: Mapping[str, Mapping[str, None]] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}


def draw(
    study: Study,
    subjects: Mapping[str, Subject],
    states: Sequence[State],
    store: Store,
    path: Path,
    *,
    with_paper: bool = False,
    force: bool = False,
) -> None:
    """Write the drawing that `study.shown` names, of what is known so far, to a .png or .svg file."""
    check_drawing(study, path)
    refuse_existing(path, force)
    import matplotlib
    from matplotlib.figure import Figure

    suffix, drawing = path.suffix.lower(), DRAWINGS.get(study.shown)
    with warnings.catch_warnings(), matplotlib.rc_context(_settings(matplotlib.rcParamsDefault)):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in scripts that the font lacks are shown as boxes
        figure = Figure(layout="constrained")
        caption = drawing.make(figure, Material(study, subjects, states, store, with_paper))
        figure.suptitle(study.summary, fontsize="large", x=0.01, ha="left")
        small = {"fontsize": "small", "color": GREY, "x": 0.01, "ha": "left"}
        figure.supxlabel(textwrap.fill(caption, CAPTION), **small)
        with atomic_file(path, force=force) as out:
            figure.savefig(out, format=suffix[1:], dpi=DOTS, metadata=dict(METADATA[suffix]))


def check_drawing(study: Study, path: Path) -> None:
    """Refuse what cannot be drawn, or not here, before anything is measured for it."""
    if path.suffix.lower() not in METADATA:
        raise BadOption(f"A figure is written to a .png or .svg file, not to {path}.")
    DRAWINGS.get(study.shown).check(study)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("Drawing figures", "figures") from None


def _settings(defaults: Mapping[Any, Any]) -> dict[Any, Any]:
    """Ours for every figure, whatever the user has set for others; where windows are opened is no concern of files."""
    return {name: value for name, value in defaults.items() if not name.startswith("backend")} | RC
