"""Text for people: safe names, error messages of other libraries, counts, durations, sizes, lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_CLASSES_SHOWN = 12
MAX_NAME = 32  # characters of a class name in a list


def readable(value: object) -> str:
    r"""One line of text; control characters are escaped so that none reaches a terminal.

    >>> print(readable("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def short_line(value: object, most: int = 120) -> str:
    r"""One readable line of at most this many characters, of text that a stranger wrote, such as a server.

    >>> short_line("Not\x1b[31m\r\n  found"), short_line("x" * 500, 4)
    ('Not\\x1b[31m found', 'xxx…')
    """
    text = readable(" ".join(str(value).split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_line(error: BaseException) -> str:
    r"""The first line of an error's message, or its type if it has none.

    >>> first_line(OSError("\nno compiler\nat all")), first_line(KeyError())
    ('no compiler', 'KeyError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def plural(count: int, noun: str) -> str:
    """A count with its noun; several words take the ending of the last.

    >>> plural(1, "patch"), plural(40, "patch"), plural(2, "class"), plural(3, "training epoch")
    ('1 patch', '40 patches', '2 classes', '3 training epochs')
    """
    if count == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("tch", "sh", "s", "x")) else "s"
    return f"{count} {noun}{ending}"


def human_time(seconds: float) -> str:
    """A duration.

    >>> human_time(0.0026), human_time(0.4), human_time(75), human_time(7500)
    ('2.6 ms', '0.4 s', '1 min 15 s', '2 h 5 min')
    """
    if 0 < seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def time_range(low: float, high: float) -> str:
    """Two measurements of a duration: one number if they print alike or differ by less than a tenth.

    >>> time_range(60, 63), time_range(60, 80)
    ('about 1 min 2 s', 'about 1 min 0 s to 1 min 20 s')
    """
    if high <= 1.1 * low or human_time(low) == human_time(high):
        return f"about {human_time((low + high) / 2)}"
    return f"about {human_time(low)} to {human_time(high)}"


def human_bytes(count: int) -> str:
    """A size in binary units.

    >>> human_bytes(999), human_bytes(315_392)
    ('999 B', '308.0 KiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def comma_list(names: Iterable[str]) -> str:
    """Names between commas, as options read them: a name that contains a comma or a quote is in double quotes.

    >>> print(comma_list(["cat", "great white shark, white shark", "dog"]))
    cat, "great white shark, white shark", dog
    """
    return ", ".join('"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name for name in names)


def class_list(classes: Sequence[str]) -> str:
    """The number of classes and the first names.

    >>> class_list(("cat", "dog", "brown bear, bruin, Ursus arctos"))
    '3: cat, dog, "brown bear, bruin, Ursus arctos"'
    """
    names = (name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in classes[:MAX_CLASSES_SHOWN])
    return f"{len(classes)}: {comma_list(names)}{' …' if len(classes) > MAX_CLASSES_SHOWN else ''}"


def decimals(values: Iterable[float]) -> str:
    """Per-channel statistics.

    >>> decimals((0.4914, 0.5))
    '0.4914 0.5000'
    """
    return " ".join(f"{value:.4f}" for value in values)


def value_range(counts: Iterable[float]) -> str:
    """One number if all are equal, else minimum and maximum.

    >>> value_range([40, 40]), value_range([2.5, 1_000_000])
    ('40', '2.5 to 1000000')
    """
    several = [int(count) if count == int(count) else round(float(count), 2) for count in counts]
    low, high = min(several), max(several)
    return f"{low}" if low == high else f"{low} to {high}"
