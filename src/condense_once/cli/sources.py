"""Open real images while showing how they are decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from condense_once.cli.printing import err_console, note, track

if TYPE_CHECKING:
    from condense_once.data.source import Source


def open_shown(spec: str, **options: Any) -> Source:
    """`open_source` with a progress bar, once images are decoded, and with its notes."""
    from condense_once.data.open import open_source

    with decoding_shown() as shown:
        return open_source(spec, **shown, **options)


@contextmanager
def decoding_shown() -> Iterator[dict[str, Any]]:
    """The arguments `progress` and `notify` of functions that open a source."""
    from condense_once.data.decoded_cache import announce_decoding

    def notify(sentence: str) -> None:
        note([sentence])

    if not err_console.is_terminal:
        yield {"progress": announce_decoding(notify), "notify": notify}
        return
    with ExitStack() as stack:
        bars: list[Callable[[int, int | None], None]] = []

        def progress(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(track("decoding images")))
            bars[0](done, total)

        yield {"progress": progress, "notify": notify}
