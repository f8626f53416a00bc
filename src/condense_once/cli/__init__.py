"""The command line: arguments, progress and printing; the work is done by the library."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from condense_once.cli.option_names import with_options
from condense_once.errors import CondenseOnceError
from condense_once.text import readable

if TYPE_CHECKING:
    import typer

STOPPED, TERMINATED = 130, 143  # exit codes of programs that Ctrl-C and SIGTERM ended
JOIN_SECONDS = 1.0  # for a thread to end by itself
PACKAGES = {name: name for name in ("filelock", "numpy", "rich", "torch", "typer")} | {"PIL": "pillow"}


def main() -> None:
    """Run the command line. Input errors print one sentence and exit with code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names need not fit the encoding of the terminal
    try:
        import typer

        from condense_once.cli.app import app

        with _sigterm_raises():
            code = app(
                prog_name="condense-once", standalone_mode=False
            )  # typer turns Ctrl-C into the exit code STOPPED
    except CondenseOnceError as error:
        _fail(str(error), download=getattr(error, "download", None))
    except ModuleNotFoundError as error:
        package = PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        _fail(_about_missing(package))
    except KeyboardInterrupt:  # while importing the modules above
        code = STOPPED
    except _Terminated:
        code = TERMINATED
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _fail(f"{about}{error.strerror or error}.")
    except (MemoryError, RuntimeError) as error:
        from condense_once.train.memory import lacks_memory

        if not lacks_memory(error):
            raise
        _fail("There is not enough memory; use smaller images, or fewer of them.")
    except typer.TyperException as error:  # last: typer itself may be what is missing
        if type(error).__name__ == "NoArgsIsHelpError":  # not public; the help has been printed
            sys.exit(2)
        _fail(_about_options(error))
    if code in (STOPPED, TERMINATED):
        # A second Ctrl-C would interrupt the join below and then hang at exit.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("stopped", file=sys.stderr)
        _leave_busy_threads(code)
        signal.signal(signal.SIGINT, before)
    sys.exit(code)


class _Terminated(BaseException):
    """SIGTERM."""


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """End the block by an exception on SIGTERM, so that files are closed and temporary ones removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> NoReturn:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave_busy_threads(code: int) -> None:
    """Exit at once if a training thread is busy: waiting for one that compiles takes half a minute."""
    busy = [thread for thread in threading.enumerate() if thread.name.startswith("condense-once")]
    for thread in busy:
        thread.join(JOIN_SECONDS)
    if any(thread.is_alive() for thread in busy):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _about_missing(package: str) -> str:
    without = "list, info, show, verify, resize, export and compare work without"
    if package != "torch":
        without = "to read condensed sets, condense_once.device in Python needs numpy alone"
    return f"This needs the package {package}, which is not installed; run: pip install {package} ({without})."


def _about_options(error: typer.TyperException) -> str:
    """The option parser's message as one sentence that ends in what to do next."""
    message = " ".join(error.format_message().split()).replace(". Did you mean", "; did you mean")
    context = getattr(error, "ctx", None)
    if context is None or message.endswith("?"):
        return message
    return f"{message.rstrip('.')}; see: {context.command_path} --help."


def _fail(sentence: str, download: str | None = None) -> NoReturn:
    print(f"error: {readable(with_options(sentence))}", file=sys.stderr)
    if download is not None:
        print(f"next: condense-once data get {readable(download)}", file=sys.stderr)
    sys.exit(2)
