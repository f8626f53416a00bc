"""How things are put for people: names whatever is in them, errors of others, and durations."""

from __future__ import annotations


def readable(value: object) -> str:
    r"""One line of text whatever is in it: control characters are written out, so that none of them reaches a terminal.

    >>> print(readable("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def first_line(error: BaseException) -> str:
    r"""What somebody else's error says first; its kind, if it says nothing.

    >>> first_line(OSError("\nno compiler\nat all")), first_line(KeyError())
    ('no compiler', 'KeyError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def human_time(seconds: float) -> str:
    """A duration as people say it.

    >>> human_time(0.4), human_time(75), human_time(7500)
    ('0.4 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
