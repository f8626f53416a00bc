"""What can go wrong through no fault of the program.

Each message is one sentence that names what was given, what was expected and what to do next. The command line prints it
and exits with code 2; library users catch `CondenseOnceError`.
"""


class CondenseOnceError(Exception):
    """Base of every error that a user's input can cause."""


class BadFile(CondenseOnceError):
    """A file or folder that cannot be read as what it claims to be."""


class BadOption(CondenseOnceError):
    """An option that is missing, wrong, or contradicts another one."""


class UnknownName(CondenseOnceError):
    """A name that no registry entry carries."""


class MissingExtra(CondenseOnceError):
    """An optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional dependency: install condense-once with the extra {extra!r}, in a checkout by"
            f" pip install '.[{extra}]'."
        )
