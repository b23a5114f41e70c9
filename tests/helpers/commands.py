"""Commands as a user types them."""

import subprocess
import sys

from amlb_ext.cli import main


def words_of(*parts) -> list[str]:
    """Return the words of a command: a text is parted at blanks, a path and a list are not."""
    words = []
    for part in parts:
        if isinstance(part, str):
            words += part.split()
        else:
            words += map(str, part if isinstance(part, list | tuple) else [part])
    return words


def hardsynth(*parts) -> int:
    """Run a command in this process; return its status."""
    return main(words_of(*parts))


#: A suite that is quickly made, where it matters what is written and not what is made hard.
BRIEF = words_of(
    "--synthesizer local --composition weighted --times 1 --copies 1 --no-train-hard",
    "--certificate none -j 1",
)


def python(code, *words, **options) -> str:
    """Run code in an interpreter of its own, which must end well; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    return done.stdout
