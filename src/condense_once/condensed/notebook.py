"""A set in a notebook: a few patches of each class under a small slider."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.sprite import PAD, sprite_of
from condense_once.condensed.subset import rank_within_class
from condense_once.inline_html import content_policy, filled, safe_json

FOLDER = Path(__file__).parent / "notebook_page"
COLUMNS, CLASSES = 20, 20  # patches per class and classes that are shown
ROW, OTHER = 26, 96  # pixels: height of a class, and of everything else


def notebook_html(data: CondensedSet) -> str:
    """A frame with the first patches of each class; if the set is ranked, the slider fades what a smaller set leaves out."""
    there = np.flatnonzero(data.counts())[:CLASSES]
    rows = np.flatnonzero(np.isin(data.labels, there) & (rank_within_class(data.labels) < COLUMNS))
    sprite = sprite_of(data.take(rows))
    contents = {
        "title": repr(data).strip("<>").removeprefix("CondensedSet "),
        "classes": [data.classes[label] for label in there],
        "labels": np.searchsorted(there, data.labels[rows]).tolist(),
        "rows": rows.tolist(),
        "patches": len(data),
        "ranked": data.ranking is not None,
        "step": len(data.classes) if data.ranking is not None and data.ranking.balanced else 1,
        "sprite": {"columns": sprite.columns, "width": sprite.width, "height": sprite.height, "pad": PAD},
    }
    style, script = ((FOLDER / name).read_text("utf-8") for name in ("notebook.css", "notebook.js"))
    places = {
        "policy": content_policy(style, script),
        "style": style,
        "script": script,
        "sprite": sprite.url,
        "data": safe_json(contents),
    }
    page = filled((FOLDER / "notebook.html").read_text("utf-8"), places)
    return (
        f'<iframe sandbox="allow-scripts" title="{escape(data.name)}" srcdoc="{escape(page)}"'
        f' style="width: 100%; height: {OTHER + ROW * len(there)}px; border: 0"></iframe>'
    )
