"""Class names in pictures: in a font that has their characters, else transliterated, else numbered."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from PIL import ImageFont

Font = ImageFont.ImageFont | ImageFont.FreeTypeFont

SIZE = 14  # of the text, in pixels
LONGEST = 24  # characters of a name
MAX_EXPLAINED = 10  # numbers in a note
ABSENT = "\uffff"  # no character, so every font draws it as a missing one
# Files that systems have, by the scripts they cover. Pillow looks for them in the folders of the system.
SYSTEM_FONTS = (
    *("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "FreeSans.ttf", "arial.ttf", "Arial.ttf"),
    *(
        "NotoSansCJK-Regular.ttc",
        "NotoSansCJKsc-Regular.otf",
        "NotoSansSC-Regular.otf",
        "wqy-microhei.ttc",
        "wqy-zenhei.ttc",
    ),
    *(
        "DroidSansFallbackFull.ttf",
        "Arial Unicode.ttf",
        "PingFang.ttc",
        "Hiragino Sans GB.ttc",
        "msyh.ttc",
        "msgothic.ttc",
    ),
    *("malgun.ttf", "unifont.ttf", "unifont.otf"),
)
# Letters that Unicode does not take apart.
LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ł": "l", "Ł": "L"}
    | {"ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i", "–": "-", "—": "-", "’": "'"}
)


class Label(NamedTuple):
    text: str
    font: Font


def class_labels(classes: Mapping[int, str]) -> tuple[list[Label], list[str]]:
    """What to write for each class, given by number, and notes on names that no font here has."""
    labels = [drawable(name, number, sheet_fonts()) for number, name in classes.items()]
    return labels, notes_on_labels(list(classes.values()), [label.text for label in labels])


def drawable(name: str, number: int, fonts: Iterable[Font]) -> Label:
    """A name in the first of the fonts that has all its characters.

    >>> [drawable(name, 3, [ImageFont.load_default(SIZE)]).text for name in ("cat", "Äffchen", "猫")]
    ['cat', 'Affchen', 'class 3']
    """
    tried = []
    for font in fonts:
        if can_draw(font, name):
            return Label(name, font)
        tried.append(font)
    plain = transliterated(name)
    numbered = f"class {number}"
    return next((Label(plain, font) for font in tried if can_draw(font, plain)), Label(numbered, tried[0]))


def notes_on_labels(classes: Sequence[str], written: Sequence[str]) -> list[str]:
    """Notes on names that are written differently."""
    numbered = [f"{text} is {name}" for name, text in zip(classes, written, strict=True) if _is_number(text, name)]
    notes = []
    if numbered:
        more = ", …" if len(numbered) > MAX_EXPLAINED else ""
        notes.append(
            f"No font here has the characters of some class names: {', '.join(numbered[:MAX_EXPLAINED])}{more}."
        )
    if len(numbered) < sum(name != text for name, text in zip(classes, written, strict=True)):
        notes.append("No font here has the accents of some class names, which are written without them.")
    return notes


def transliterated(name: str) -> str:
    """A name without accents.

    >>> transliterated("Bärenklau, naïve Łódź")
    'Barenklau, naive Lodz'
    """
    parts = unicodedata.normalize("NFKD", name.translate(LETTERS))
    return "".join(part for part in parts if not unicodedata.combining(part))


def can_draw(font: Font, text: str) -> bool:
    if not isinstance(font, ImageFont.FreeTypeFont):  # Pillow without FreeType
        return text.isascii()
    return all(_has(font, character) for character in set(text))


def shortened(name: str) -> str:
    """A name, truncated to fit beside a picture.

    >>> shortened("cat"), shortened("a_very_long_name_of_one_class")
    ('cat', 'a_very_long_name_of_one…')
    """
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def sheet_fonts() -> Iterator[Font]:
    """Pillow's own font, which has only ASCII letters, then those of the system as far as they are needed."""
    yield _default()
    yield from system_fonts()


def system_fonts() -> Iterator[ImageFont.FreeTypeFont]:
    for file in (*_matplotlib_font(), *SYSTEM_FONTS):
        if (font := _load(file)) is not None:
            yield font


def _matplotlib_font() -> Iterator[str]:
    """The file of DejaVu Sans that matplotlib brings, if that is installed."""
    found = find_spec("matplotlib")
    if found is not None and found.origin is not None:
        yield str(Path(found.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf")


@cache
def _default() -> Font:
    return ImageFont.load_default(SIZE)


@cache
def _load(file: str) -> ImageFont.FreeTypeFont | None:
    try:
        return ImageFont.truetype(file, SIZE)
    except (OSError, ImportError):  # no such font, or Pillow without FreeType
        return None


@cache
def _has(font: ImageFont.FreeTypeFont, character: str) -> bool:
    if character.isspace():
        return True
    drawn, missing = font.getmask(character), font.getmask(ABSENT)
    return (drawn.size, bytes(drawn)) != (missing.size, bytes(missing))


def _is_number(text: str, name: str) -> bool:
    return text != name and text != transliterated(name)
