"""What the tests of faults share."""

import numpy as np
import pandas as pd

from amlb_ext.cli import main

#: The least work that still gives every kind of file, whatever F is.
LIGHT = ["--synthesizer", "local", "--folds", "1", "--composition", "weighted"]
LIGHT += ["--kappa", ".005", "--times", "1", "--copies", "1"]
LIGHT += ["--no-train-hard", "-q", "-j", "1"]
CHEAP = ["--baseline", "ridge", *LIGHT]


def cheap(command, *words):
    """Run ``generate`` or ``harden`` in this process with the cheapest settings."""
    return main([command, *CHEAP, *map(str, words)])


def write_table(path, seed, n=50, shift=0.0):
    """Write a table whose last column is the target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.random(n), "b": rng.choice(["u", "v"], n)})
    frame["y"] = frame["a"] * 3 + shift + rng.normal(0, 0.3, n)
    frame.to_csv(path, index=False)
    return path


def error_of(capsys):
    """Return what was said, which must be one line."""
    said = capsys.readouterr().err.strip()
    assert said.startswith("hardsynth: error: ")
    assert len(said.splitlines()) == 1
    return said


def flip(path, rng):
    """Change one byte of a file, at a random place and to a random other value."""
    content = bytearray(path.read_bytes())
    place = int(rng.integers(len(content))) if content else 0
    if content:
        content[place] ^= int(rng.integers(1, 256))
    else:
        content += b"x"
    path.write_bytes(bytes(content))
