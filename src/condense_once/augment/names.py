"""The names of augmentation strategies, without what applies them: recipes are checked and listed without PyTorch."""

from __future__ import annotations

from condense_once.errors import BadOption
from condense_once.registry import nearest

NAMES = ("flip", "color", "crop", "scale", "rotate", "cutout")  # in the order of application
SINGLE_OP = "dsa:"  # before a strategy: one of its operations per call, as DSA reads it, not all of them


def parse_names(strategy: str) -> list[str]:
    """The names in a strategy, joined by `_` in any order; an empty string or `none` has none.

    >>> parse_names("color_crop_flip"), parse_names("none")
    (['color', 'crop', 'flip'], [])
    """
    names = [] if strategy in ("", "none") else strategy.split("_")
    for name in names:
        if name not in NAMES:
            raise BadOption(f"There is no augmentation {name!r} (in {strategy!r}); {nearest(name, NAMES)}")
        if names.count(name) > 1:
            raise BadOption(f"The augmentation {strategy!r} names {name!r} more than once; name it once.")
    return names


def without(strategy: str, name: str) -> str:
    """The strategy without one of its names.

    >>> without("color_crop_flip_scale", "flip")
    'color_crop_scale'
    """
    return "_".join(part for part in strategy.split("_") if part != name)
