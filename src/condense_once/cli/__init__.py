"""The command line: arguments, progress and printing; the work is done by the library."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from typing import NoReturn

import typer

from condense_once.errors import CondenseOnceError
from condense_once.train.memory import keep_freed_memory

STOPPED = 130  # what a shell reports of a program that was ended by Ctrl-C
PATIENCE = 1.0  # seconds in which a thread may end by itself


def main() -> None:
    """Run the command line. What a user's input can cause ends in one sentence and exit code 2, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names that the encoding of the terminal does not know
    keep_freed_memory()
    try:
        from condense_once.cli.app import app

        code = app(prog_name="condense-once", standalone_mode=False)  # typer turns Ctrl-C into the exit code STOPPED
    except CondenseOnceError as error:
        _fail(str(error))
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # has no public name; its help has been printed
            sys.exit(2)
        _fail(_about_options(error))
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _fail(f"{about}{error.strerror or error}.")
    except MemoryError:
        _fail("There is not enough memory for this.")
    except KeyboardInterrupt:  # while the modules above were imported
        code = STOPPED
    if code == STOPPED:
        # A second Ctrl-C would end the waiting below, and begin one without end.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("stopped", file=sys.stderr)
        _leave_busy_threads()
        signal.signal(signal.SIGINT, before)
    sys.exit(code)


def _leave_busy_threads() -> None:
    """End the program at once if a training goes on in a thread: one that compiles would be waited for, half a minute."""
    busy = [thread for thread in threading.enumerate() if thread.name.startswith("condense-once")]
    for thread in busy:
        thread.join(PATIENCE)
    if any(thread.is_alive() for thread in busy):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STOPPED)


def _about_options(error: typer.TyperException) -> str:
    """The option parser's complaint as one sentence that ends in what to do next."""
    complaint = " ".join(error.format_message().split()).replace(". Did you mean", "; did you mean")
    context = getattr(error, "ctx", None)
    if context is None or complaint.endswith("?"):
        return complaint
    return f"{complaint.rstrip('.')}; see: {context.command_path} --help."


def _fail(sentence: str) -> NoReturn:
    from condense_once.cli.printing import readable

    print(f"error: {readable(sentence)}", file=sys.stderr)
    sys.exit(2)
