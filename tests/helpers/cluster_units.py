"""Units that workers of a cluster import by name: they must not stand in a test module."""

import os
import time
from pathlib import Path


def note_and_sleep(folder, name, seconds):
    Path(folder, f"{name}.{os.getppid()}").touch()
    time.sleep(seconds)
    return name
