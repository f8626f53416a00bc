"""The fonts of figures: names of classes and sets may have characters that matplotlib's own font lacks."""

from __future__ import annotations

from collections.abc import Iterable

from condense_once.condensed.class_labels import Font, can_draw, drawable, shortened, system_fonts, transliterated
from condense_once.condensed.set import CondensedSet

FAMILY = "DejaVu Sans"  # comes with matplotlib
OTHERS = "Characters of other names that no font here has are written as U+…; an SVG has them all."
UNLIKE = "Class names whose characters no font here has are transliterated or numbered; an SVG has them all."


def find_fonts(sets: Iterable[CondensedSet], names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Families of fonts that have the characters of the class names and of other `names`, and notes on what no font has."""
    from matplotlib import font_manager

    families: dict[str, None] = {FAMILY: None}
    fonts: dict[Font, None] = {}
    notes: list[str] = []
    for data in sets:
        classes = list(map(shortened, data.classes))
        labels = [drawable(name, number, system_fonts()) for number, name in enumerate(classes)]
        if classes != [label.text for label in labels]:
            notes = [UNLIKE]
        fonts |= dict.fromkeys(label.font for label in labels)
    characters = sorted(set("".join(names)))
    found = {character: font_of(character) for character in characters}
    fonts |= dict.fromkeys(font for font in found.values() if font is not None)
    if any(font is None and in_fonts(character).startswith("U+") for character, font in found.items()):
        notes = [*notes, OTHERS]
    for font in fonts:
        name, path = str(font.getname()[0]), str(font.path)  # type: ignore[union-attr]  # a file of the system
        if name not in families:
            font_manager.fontManager.addfont(path)
            families[name] = None
    return list(families), notes


def in_fonts(text: str) -> str:
    """A text in characters that some font of the system has: else without accents, else as code points.

    >>> in_fonts("Bär × 2")
    'Bär × 2'
    """
    return "".join(map(_in_fonts, text))


def font_of(character: str) -> Font | None:
    return next((font for font in system_fonts() if can_draw(font, character)), None)


def _in_fonts(character: str) -> str:
    if font_of(character) is not None:
        return character
    plain = transliterated(character)
    return plain if plain and all(map(font_of, plain)) else f"U+{ord(character):04X}"
