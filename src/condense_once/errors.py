"""Errors caused by input, never by the program itself.

Each message is one sentence: what is wrong, what was expected, what to do next. Parameters stand in `backticks`; the
command line shows them as options and exits with code 2. Catch `CondenseOnceError`, or the builtin error that each
class also derives from.
"""


class CondenseOnceError(Exception):
    """Base class of all errors that input can cause."""


class BadFile(CondenseOnceError, ValueError):
    """A file or folder that is damaged or not in the expected format."""


class MissingFile(BadFile, FileNotFoundError):
    """A file or folder that does not exist."""


class InaccessibleFile(BadFile, OSError):
    """A file or folder that the system cannot read or write."""


class BadOption(CondenseOnceError, ValueError):
    """A parameter that is missing, invalid, or contradicts another one."""


class OutOfMemory(CondenseOnceError, MemoryError):
    """A job that needs more memory than there is."""


class UnknownName(CondenseOnceError, LookupError):  # not KeyError, whose `str` puts the message in quotes
    """A name that is not in its registry."""


class MissingExtra(CondenseOnceError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)  # both, so that it can be pickled
        self.what, self.extra = what, extra

    def __str__(self) -> str:
        return (
            f"{self.what} needs an optional dependency: install condense-once with the extra {self.extra!r}, in a checkout"
            f" with pip install '.[{self.extra}]'."
        )
