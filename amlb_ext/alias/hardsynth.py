"""The package under its distribution's name: ``import hardsynth`` gives ``amlb_ext`` itself."""

import sys

import amlb_ext

if __name__ == "__main__":
    from amlb_ext.cli import main

    sys.exit(main())
# one module under two names, so that classes and settings are the same under both
sys.modules[__name__] = amlb_ext
