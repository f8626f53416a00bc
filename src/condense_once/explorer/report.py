"""Write the page of a ranked set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.sprite import sprite_of
from condense_once.condensed.subset import require_ranking
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.explorer.accuracies import Measured, measured_accuracies
from condense_once.explorer.assemble import page_html
from condense_once.explorer.contents import page_contents
from condense_once.explorer.rankings import page_rankings
from condense_once.explorer.real_images import nearest_real_images
from condense_once.explorer.same_patches import SamePatches, studied_sets
from condense_once.explorer.scoring import SeenPatches, seen_as_pixels, seen_by_new_run, seen_by_stored_run
from condense_once.files import atomic_file, refuse_existing
from condense_once.progress import Progress
from condense_once.studies.store import Store


@dataclass(frozen=True)
class Report:
    """What was written."""

    path: Path
    patches: int
    rankings: int
    accuracies: int  # points of the chart
    map_of: str
    notes: tuple[str, ...]


def report(
    data: CondensedSet | str | Path,
    out: str | Path,
    *,
    store: str | Path | None = None,
    compare: Sequence[CondensedSet | str | Path] = (),
    source: Source | str | None = None,
    train: bool = True,
    force: bool = False,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> Report:
    """Write one self-contained HTML page on a ranked set: what every smaller set keeps, and what it costs.

    `store` is a store of studies with accuracies of the set. `compare` are other rankings of the same patches. With the `source`
    that the set was condensed from, every patch is shown beside the real image most like it. The map shows features of the
    scoring network, from a scoring run in the store or else, if `train`, from a new one; otherwise it is by pixels, and there
    are no error curves. `notify` receives remarks as sentences.
    """
    out, notify = Path(out), notify or (lambda _: None)
    check_page(out, force=force)
    name, loaded = _named(data), as_set(data)
    require_ranking(loaded.ranking, name)
    others = [(_named(other), as_set(other)) for other in compare]
    for other, ranked in others:
        require_ranking(ranked.ranking, other)
    rankings = list(page_rankings(loaded, name, others))
    rankings_of_it = [ranked for _, ranked in others]
    measured, seen = _from_store(None if store is None else Path(store), loaded, rankings_of_it, notify)
    if seen is None and train:
        notify(
            "A network is trained for the map and the error curves, as for the ranking; pass a `store` with the scoring run, or"
            " `train=False`, to go without."
        )
        seen = seen_by_new_run(loaded, progress)
    seen = seen or seen_as_pixels(loaded)
    sprite = sprite_of(loaded)
    real = None if source is None else nearest_real_images(loaded, source)
    contents = page_contents(loaded, sprite, seen, rankings, measured, real)
    images = {"sprite": sprite.url} | ({} if real is None else {"real": real.sprite.url})
    page = page_html(f"{loaded.name} · condense-once", contents, images)
    with atomic_file(out, force=force) as handle:
        handle.write(page.encode())
    points = sum(len(line.points) for way in measured for line in way.lines)
    return Report(out, len(loaded), len(rankings), points, seen.source, sprite.notes)


def check_page(out: Path, *, force: bool = False) -> None:
    """Refuse an output that could not be written, before any work is spent on it."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise BadOption(f"A report is an HTML page; choose a name that ends in .html, not {out}.")
    refuse_existing(out, force)


def _named(data: CondensedSet | str | Path) -> str:
    """How a command names a set."""
    return f"{data.name}.safetensors" if isinstance(data, CondensedSet) else str(data)


def _from_store(
    path: Path | None, data: CondensedSet, others: Sequence[CondensedSet], notify: Callable[[str], None]
) -> tuple[list[Measured], SeenPatches | None]:
    if path is None:
        return [], None
    if not path.exists():
        raise BadOption(f"There is no store {path}; run a study first, or choose another `store`.")
    with closing(Store(path, readonly=True)) as store:
        same = SamePatches.of(data, [*others, *studied_sets(store)])
        measured, seen = measured_accuracies(same, store), seen_by_stored_run(data, same, store)
        if not measured:
            notify(f"The store {path} has no accuracies of {data.name}; run a study of it with this store.")
        if store.damaged:
            notify(f"{len(store.damaged)} rows of {path} are damaged and were left out; run the study again.")
    return measured, seen
