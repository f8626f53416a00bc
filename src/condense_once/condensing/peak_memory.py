"""The peak memory of this process."""

from __future__ import annotations

import sys


def peak_memory() -> int | None:
    """In bytes; None where the system does not report it."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
