"""The fonts of figures: class names may have characters that matplotlib's own font lacks."""

from __future__ import annotations

from collections.abc import Iterable

from condense_once.condensed.class_labels import drawable, shortened, system_fonts
from condense_once.condensed.set import CondensedSet

FAMILY = "DejaVu Sans"  # comes with matplotlib
UNLIKE = "Class names whose characters no font here has are transliterated or numbered; an SVG has them all."


def find_fonts(sets: Iterable[CondensedSet]) -> tuple[list[str], list[str]]:
    """Families of fonts that have the characters of the class names, and a note if some are not written as they are."""
    from matplotlib import font_manager

    families: dict[str, None] = {FAMILY: None}
    notes: list[str] = []
    for data in sets:
        names = list(map(shortened, data.classes))
        labels = [drawable(name, number, system_fonts()) for number, name in enumerate(names)]
        if names != [label.text for label in labels]:
            notes = [UNLIKE]
        for font in dict.fromkeys(label.font for label in labels):
            name, path = str(font.getname()[0]), str(font.path)  # type: ignore[union-attr]  # a file of the system
            if name not in families:
                font_manager.fontManager.addfont(path)
                families[name] = None
    return list(families), notes
