"""The parser of a command: one-line errors, a help of one screen, and all flags on request.

A command with many flags names the dozen that most users need, in groups of its own;
``--help`` shows these and an example, ``--help-all`` all of them.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

#: Where the folder that ``-u`` names is kept while a command line is parsed.
_BY_FLAG = "suite_by_flag"


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, with the nearest flag or command.

    Parameters
    ----------
    examples : str
        Command lines to print below the help, one per line.
    **options
        Those of ``argparse.ArgumentParser``.
    """

    def __init__(self, *, examples: str = "", **options: Any) -> None:
        super().__init__(add_help=False, **options)
        #: Command lines that the help ends in.
        self.examples = examples
        self._common: Mapping[str, Sequence[str]] = {}
        self._reasons: Mapping[str, str] = {}
        self._suite_dest = ""
        self.add_argument(
            "-h", "--help", action=_PrintHelp, help="show this help and exit"
        )
        self.add_argument(
            "--help-all",
            action=_PrintHelp,
            const="all",
            help="show all flags of the command and exit",
        )

    def show_first(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Set which arguments ``--help`` shows, by the title of their group.

        Parameters
        ----------
        groups : mapping of str to sequence of str
            Flags such as ``--target``, or the name of a positional argument.
        """
        self._common = groups

    def refuse_flags(self, reasons: Mapping[str, str]) -> None:
        """Set what is said of flags that other commands have and this one cannot honour.

        Parameters
        ----------
        reasons : mapping of str to str
            Why not, and what to do instead, by flag.
        """
        self._reasons = reasons

    def format_help(self, everything: bool = False) -> str:
        """Return the text of ``--help``, or with ``everything`` of ``--help-all``.

        Parameters
        ----------
        everything : bool
        """
        text = self._format_common() if self._common and not everything else None
        if text is None:
            text = super().format_help()
        if self.examples:
            title = "example" if "\n" not in self.examples.strip() else "examples"
            lines = [f"  {line}" for line in self.examples.strip().splitlines()]
            text += "\n".join(["", f"{title}:", *lines, ""])
        n_hidden = self._count_hidden()
        if n_hidden and not everything:
            text += f"\n{n_hidden} more flags: {self.prog} --help-all\n"
        return text

    def common_actions(self) -> list[argparse.Action]:
        """Return the arguments that ``--help`` shows, in its order."""
        actions = []
        for names in self._common.values():
            actions += [self._find_action(name) for name in names]
        return actions

    def add_suite(self, dest: str = "suite", **options: Any) -> None:
        """Add the argument of a suite's folder, which ``-u`` names, too, as in ``run``.

        Parameters
        ----------
        dest : str
        **options
            Of ``add_argument``: ``metavar``, ``help``.
        """
        # of one command several arguments may come before the flags, and none has to
        self.add_argument(dest, nargs="?", **options)
        self.add_argument(
            "-u", dest=_BY_FLAG, metavar="DIR", help="the same, named by a flag"
        )
        self._suite_dest = dest

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and put a suite that ``-u`` names where the positional argument would be."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if self._suite_dest:
            words = [getattr(parsed, self._suite_dest), getattr(parsed, _BY_FLAG)]
            given = [word for word in words if word is not None]
            if not given:
                self.error(
                    f"the following arguments are required: "
                    f"{self._find_action(self._suite_dest).metavar}"
                )
            if len(given) > 1:
                self.error(f"the suite is named twice: {given[0]} and -u {given[1]}")
            setattr(parsed, self._suite_dest, given[0])
            delattr(parsed, _BY_FLAG)
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is no command with the nearest ones, not with all of them."""
        if (
            isinstance(action, argparse._SubParsersAction)
            and value not in action.choices
        ):
            near = difflib.get_close_matches(value, action.choices, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            what = str(action.metavar or action.dest).lower()
            self.error(f"there is no {what} {value!r}{hint}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        self.exit(2, f"hardsynth: error: {message} (see {self.prog} --help)\n")

    def refuse_unknown(self, words: Sequence[str], command: str = "") -> NoReturn:
        """Refuse arguments that no flag accepts, and say what was probably meant.

        Parameters
        ----------
        words : sequence of str
            As ``parse_known_args`` returns them.
        command : str
            The command that was given them.
        """
        parser = self.subparsers().get(command, self)
        word = words[0]
        reason = parser._reasons.get(word.split("=")[0])
        if reason:
            parser.error(f"{parser.prog} has no {word.split('=')[0]}: {reason}")
        if word.startswith("-"):
            hint = parser._flag_hint(word.split("=")[0])
        else:
            hint = parser._position_hint()
        parser.error(f"unknown argument {word}{hint}")

    def subparsers(self) -> dict[str, Parser]:
        """Return the parsers of the commands below this one, by name."""
        # argparse lists flags and subcommands in private attributes only
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def _flag_hint(self, flag: str) -> str:
        """Return which flag was probably meant."""
        # without their dashes, which would make all flags alike
        flags = {known.lstrip("-"): known for known in sorted(all_flags(self))}
        similar = difflib.get_close_matches(flag.lstrip("-"), flags, n=1)
        return f"; did you mean {flags[similar[0]]}?" if similar else ""

    def _position_hint(self) -> str:
        """Return where an argument that may be given several times belongs."""
        for action in self._actions:
            if not action.option_strings and action.nargs in ("*", "+"):
                # argparse takes the first run of words, and none after a flag
                title = action.metavar or action.dest
                return f"; put every {title} in one place, before the flags"
        return ""

    def _find_action(self, name: str) -> argparse.Action:
        for action in self._actions:
            if name in action.option_strings or name == action.dest:
                return action
        raise ValueError(f"{self.prog} has no argument {name}")

    def _count_hidden(self) -> int:
        if not self._common:
            return 0
        flags = [action for action in self._actions if action.option_strings]
        shown = [action for action in self.common_actions() if action.option_strings]
        # the two helps are no settings of the command
        return len(flags) - len(shown) - 2

    def _format_common(self) -> str:
        shown = self.common_actions()
        needed = []
        for action in shown:
            if action.required or not action.option_strings:
                needed.append(action)
        formatter = self._get_formatter()
        formatter.add_usage(None, needed, [], prefix="")
        usage = " ".join(formatter.format_help().split())

        formatter = self._get_formatter()
        # the formatter reads the text as a format
        formatter.add_usage(f"{usage} [flags]".replace("%", "%%"), [], [])
        formatter.add_text(self.description)
        for title, names in self._common.items():
            formatter.start_section(title)
            formatter.add_arguments([self._find_action(name) for name in names])
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


class _PrintHelp(argparse._HelpAction):
    """Print the short help, or all of it where ``const`` is ``"all"``, and exit."""

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str,
        const: str = "",
        help: str | None = None,
    ) -> None:
        # without a destination: a value in the namespace would say nothing
        super().__init__(option_strings, argparse.SUPPRESS, help=help)
        self.const = const

    def __call__(self, parser: Any, *_: Any) -> None:
        """Print and exit."""
        print(parser.format_help(everything=self.const == "all"), end="")
        parser.exit()


def all_flags(parser: Parser) -> set[str]:
    """Return the flags of a parser and of every command below it."""
    flags = set(parser._option_string_actions)
    for subparser in parser.subparsers().values():
        flags |= all_flags(subparser)
    return flags
