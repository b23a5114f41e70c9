"""The command line: a command is a function with a docstring.

``main`` the entry point, ``parse`` from words to a command and its arguments, ``help`` the text of
``--help`` · ``command`` how a function becomes a command, ``signatures`` what a function declares,
``values`` what words mean, ``settings`` settings as flags, ``terminal`` the streams · ``commands``
lists the modules of the commands. Nothing heavy is imported before a command runs, so ``hardsynth
--help`` answers at once.
"""

from amlb_ext.cli.main import main

__all__ = ["main"]
