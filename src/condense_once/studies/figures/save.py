"""Write the figure of a study to a file."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from condense_once.errors import BadOption, MissingExtra
from condense_once.files import atomic_file, refuse_existing
from condense_once.studies.figures.drawing import DRAWINGS, FigureData
from condense_once.studies.figures.fonts import FAMILY, find_fonts, in_fonts
from condense_once.studies.figures.style import GREY, RC
from condense_once.studies.study import Study

DPI = 160  # of PNG files
CAPTION = 140  # characters per line
# Without metadata that would differ between two files of the same figure.
METADATA: Mapping[str, Mapping[str, None]] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}


def save_figure(data: FigureData, path: Path, *, force: bool = False, bare: bool = False) -> None:
    """Draw what `study.shown` names, of what is known so far, to a .png or .svg file; `bare` leaves out title and notes."""
    study = data.study
    check_figure(study, path)
    refuse_existing(path, force)
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    suffix, drawing = path.suffix.lower(), DRAWINGS.get(study.shown)
    sets = [pair.data for pair in data.inputs.values()]
    names = [study.title, study.summary, *map(study.label, data.inputs)]
    data = replace(data, text_stays_text=suffix == ".svg")
    families, notes = ([FAMILY], []) if data.text_stays_text else find_fonts(sets, names)
    settings = {**_settings(matplotlib.rcParamsDefault), "font.family": families}
    with warnings.catch_warnings(), matplotlib.rc_context(settings):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # in an SVG, which keeps its text
        figure = Figure(layout="constrained")
        caption = " ".join([drawing.draw(figure, data), *notes])
        if not bare:
            figure.suptitle(study.summary if data.with_paper else study.title, fontsize="large", x=0.01, ha="left")
            small = {"fontsize": "small", "color": GREY, "x": 0.01, "ha": "left"}
            figure.supxlabel(textwrap.fill(caption, CAPTION), **small)
        if not data.text_stays_text:
            for text in figure.findobj(Text):
                text.set_text(in_fonts(text.get_text()))
        with atomic_file(path, force=force) as out:
            figure.savefig(out, format=suffix[1:], dpi=DPI, metadata=dict(METADATA[suffix]))


def check_figure(study: Study, path: Path) -> None:
    """Refuse a figure that cannot be drawn, before anything is measured for it."""
    if path.suffix.lower() not in METADATA:
        raise BadOption(f"A figure is written to a .png or .svg file, not to {path}.")
    DRAWINGS.get(study.shown).check(study)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("Drawing figures", "figures") from None


def _settings(defaults: Mapping[Any, Any]) -> dict[Any, Any]:
    """The same for every figure, whatever the user has set; the backend matters only for windows."""
    return {name: value for name, value in defaults.items() if not name.startswith("backend")} | RC
