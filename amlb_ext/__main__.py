"""``python -m amlb_ext`` is ``hardsynth``."""

import sys

from amlb_ext.cli import main

if __name__ == "__main__":
    sys.exit(main())
