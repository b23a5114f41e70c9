"""The command line: flags derived from the configuration, and wiring only.

``main`` the entry point · ``flags`` settings as flags · ``show`` what is printed ·
``commands`` one function per command. Nothing heavy is imported before a command runs, so
``hardsynth --help`` answers at once.
"""

from amlb_ext.cli.main import main

__all__ = ["main"]
