"""The command line: flags derived from the configuration, and wiring only.

``main`` the entry point · ``flags`` settings as flags, and flags that commands share · ``display``
what is printed · ``terminal`` the streams it is printed to · one module for each command, with
``add_parser``, which adds its flags, and ``run_command``. Nothing heavy is imported before a
command runs, so ``hardsynth --help`` answers at once.
"""

from amlb_ext.cli.main import main

__all__ = ["main"]
