"""The most memory that this process held.

``ru_maxrss`` of :mod:`resource` serves no process that a larger one has started: on Linux it begins
with the memory of the parent at that moment, so a child of a large process seems to need nothing.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_mb() -> float:
    """Return the most memory, in MB of 2**20 bytes, that this process held since it was started."""
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "VmHWM":
                return float(value.split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
