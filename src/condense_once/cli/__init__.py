"""The command line: arguments, progress and printing; the work is done by the library."""

from __future__ import annotations

import sys

from condense_once.errors import CondenseOnceError


def main() -> None:
    """Run the command line. What a user's input can cause ends in one sentence and exit code 2, never in a traceback."""
    from condense_once.cli.app import app

    try:
        app()
    except CondenseOnceError as error:
        _fail(str(error))
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _fail(f"{about}{error.strerror or error}.")
    except MemoryError:
        _fail("There is not enough memory for this.")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


def _fail(sentence: str) -> None:
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)
