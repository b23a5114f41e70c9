"""The command line: a command is a function with a docstring.

``main`` the entry point: from words to a command and its arguments, and the text of ``--help`` ·
``command`` how a function becomes a command, and which modules have commands · ``values`` what
words mean, ``settings`` settings as flags, ``terminal`` the streams. Nothing heavy is imported
before a command runs, so ``hardsynth --help`` answers at once.
"""

from amlb_ext.cli.main import main

__all__ = ["main"]
