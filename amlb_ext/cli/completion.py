"""``hardsynth completion``: a script that lets a shell complete commands, flags and paths."""

from __future__ import annotations

from typing import Literal

from amlb_ext.cli.command import COMMANDS, command


@command(group="research")
def completion(shell: Literal["bash", "zsh", "fish"]) -> int:
    """Print a script for completion in your shell.

    The script lets your shell complete commands, flags and paths. The shell reads it when it
    starts.

    Parameters
    ----------
    shell : SHELL
        bash, zsh or fish

    Examples
    --------
    $ hardsynth completion bash > ~/.local/share/bash-completion/completions/hardsynth
    $ hardsynth completion zsh > ~/.zfunc/_hardsynth
    """
    from cyclopts import App

    app = App(name="hardsynth", help_flags=("--help", "--help-all"))
    for one in COMMANDS.values():
        one.add_to(app, for_completion=True)
    print(app.generate_completion(shell=shell), end="")
    return 0
