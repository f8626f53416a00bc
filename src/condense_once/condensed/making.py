"""How a set came to be, in words, as its header records it; numpy and the standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from condense_once.condensed.set import Ranking
from condense_once.text import plural, short_line

MAX_SHOWN = 80  # characters of a recorded value: a header may have been written by anybody


def describe_ranking(ranking: Ranking | None) -> str:
    """The order of a set.

    >>> describe_ranking(Ranking("nested", settings={"sizes": [1, 2, 5]}))
    'nested: in the order of its images, condensed for 1, 2 and 5 images per class'
    >>> describe_ranking(Ranking("lbpe"))
    'ranked by lbpe, easy first, balanced'
    """
    if ranking is None:
        return "not ranked"
    if ranking.is_nested:
        sizes = nested_sizes(ranking)
        *others, last = map(str, sizes) if sizes else ["several"]
        each = f"{', '.join(others)} and {last}" if others else last
        return f"nested: in the order of its images, condensed for {each} images per class"
    return f"ranked by {ranking.metric}, {ranking.prefer} first, {'balanced' if ranking.balanced else 'not balanced'}"


def nested_sizes(ranking: Ranking) -> list[int]:
    """Images per class that a nested set was condensed for, ascending; empty if its header has no such list."""
    sizes = ranking.settings.get("sizes")
    if not isinstance(sizes, Sequence) or not all(isinstance(size, int) and size > 0 for size in sizes):
        return []
    return sorted(sizes)


def describe_slimming(provenance: Mapping[str, Any]) -> str | None:
    """What a slimmed set was made from and how; None for any other set.

    >>> slimmed = {"from": "mine", "patches": 400, "rule": "lbpe, easy first"}
    >>> describe_slimming({"method": "tgdd", "slimmed": slimmed, "config": {"images": "400 6b7e133e 773c1497"}})
    'from mine (400 patches, lbpe, easy first; digest 400 6b7e133e 773c1497) by tgdd, without real images'
    """
    slimmed = provenance.get("slimmed")
    if not isinstance(slimmed, Mapping):
        return None
    config = provenance.get("config")
    digest = slimmed.get("sha256") or (config.get("images") if isinstance(config, Mapping) else None)
    patches = slimmed.get("patches")
    details = [
        plural(patches, "patch") if isinstance(patches, int) else "",
        _shown(slimmed.get("rule")) if slimmed.get("rule") else "",
    ]
    what = ", ".join(filter(None, details)) + (f"; digest {_shown(digest)}" if digest else "")
    how = f" by {_shown(provenance['method'])}" if provenance.get("method") else ""
    return f"from {_shown(slimmed.get('from', 'another set'))}{f' ({what})' if what else ''}{how}, without real images"


def _shown(value: Any) -> str:
    return short_line(value, MAX_SHOWN)
