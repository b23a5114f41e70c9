"""A command is a function with a docstring: its parameters are flags, its docstring is the help.

A parameter that the docstring does not explain is explained by the function that the command calls
(``of``), or is one that all commands share. A parameter ``parts`` gets what that one takes besides,
and ``settings`` the flags of settings (:mod:`amlb_ext.cli.settings`).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import App, Parameter

from amlb_ext.cli import values
from amlb_ext.cli.display import Answer
from amlb_ext.cli.settings import (
    SettingPath,
    choose_settings,
    default_text,
    flag_name,
    metavar,
    read_layer,
    takes_several_words,
)
from amlb_ext.core.checked_call import CountOrNone
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import sha256_file

# What a function declares, read from its file: names, types, defaults, docstring. The function that
# a command calls needs pandas and scikit-learn, which take seconds to import. Its flags and their
# help need only what stands in its file.

PACKAGE = Path(__file__).parents[1]
#: Stands for a default of a parameter that has none.
REQUIRED = inspect.Parameter.empty
#: The parameters of a function, or the fields of a record.
Declared = tuple[inspect.Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class Docstring:
    """The parts of a numpydoc docstring that a help text needs, as plain text.

    Attributes
    ----------
    summary, description : str
        The first line, and what follows it.
    parameters : dict of str to tuple of str
        What stands behind the colon, and the explanation, by parameter.
    examples : str
        Command lines.
    """

    summary: str = ""
    description: str = ""
    parameters: dict[str, tuple[str, str]] = field(default_factory=dict)
    examples: str = ""


def read_docstring(text: str | None) -> Docstring:
    """Return the parts of a docstring.

    Examples
    --------
    >>> text = "Sum up.\\n\\nParameters\\n----------\\na, b : int\\n    The ``parts``."
    >>> read_docstring(text).parameters
    {'a': ('int', 'The parts.'), 'b': ('int', 'The parts.')}
    """
    parts = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(text or ""), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    summary, _, description = parts[0].strip().partition("\n\n")
    parameters = {}
    declared = sections.get("Parameters", "") + sections.get("Attributes", "")
    for entry in re.finditer(
        r"^(\w.*?)(?: : (.*))?\n((?:[ ]+.*\n?|\n)*)", declared, re.M
    ):
        names, kind, explained = entry.groups()
        for name in names.split(", "):
            parameters[name] = (kind or "", _plain(explained))
    examples = inspect.cleandoc(sections.get("Examples", ""))
    commands = [line[2:] for line in examples.splitlines() if line.startswith("$ ")]
    return Docstring(
        summary=_plain(summary),
        description=_plain(description),
        parameters=parameters,
        examples="\n".join(commands),
    )


def _plain(text: str) -> str:
    """Return a docstring's text without markup, its lines joined."""
    text = re.sub(r":\w+:`~[\w.]*?(\w+)`", r"\1", text)
    text = re.sub(r":\w+:`([^`]*)`", r"\1", text)
    return " ".join(text.replace("``", "").split())


class _Names(dict[str, Any]):
    """The names that a module's annotations use; a class is a text, as the shell gives one."""

    def __init__(self, module: str) -> None:
        super().__init__()
        path = PACKAGE.joinpath(*module.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.tree = ast.parse(path.read_text(encoding="utf-8"))

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        self[name] = self._find(name)
        return self[name]

    def _find(self, name: str) -> Any:
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if name != (alias.asname or alias.name):
                        continue
                    if node.module.startswith("amlb_ext."):
                        return names_of(node.module)[alias.name]
                    return getattr(import_module(node.module), alias.name)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return self.evaluate(node.value)
        return str

    def evaluate(self, node: ast.expr | None) -> Any:
        """Return the value of an annotation or of a default."""
        if node is None:
            return None
        try:
            return eval(ast.unparse(node), {}, self)
        except AttributeError:
            # a class of a module that is not imported, such as pd.DataFrame
            return str


names_of = cache(_Names)


@cache
def read_declaration(place: str) -> tuple[Docstring, Declared]:
    """Return what a function or a record declares.

    Parameters
    ----------
    place : str
        Its import path.

    Examples
    --------
    >>> _, declared = read_declaration("amlb_ext.estimate.estimate.estimate")
    >>> [one.default for one in declared if one.name == "generated"]
    [100000]
    """
    module, _, name = place.rpartition(".")
    names = names_of(module)
    found: list[Any] = [
        node for node in names.tree.body if getattr(node, "name", None) == name
    ]
    if not found:
        raise ValueError(f"{module} defines no {name}")
    if isinstance(found[0], ast.ClassDef):
        triples = [
            (ast.unparse(line.target), line.annotation, line.value)
            for line in found[0].body
            if isinstance(line, ast.AnnAssign)
        ]
    else:
        arguments = found[0].args
        taken = arguments.args + arguments.kwonlyargs
        defaults = arguments.defaults + arguments.kw_defaults
        defaults = [None] * (len(taken) - len(defaults)) + defaults
        pairs = zip(taken, defaults, strict=True)
        triples = [(one.arg, one.annotation, default) for one, default in pairs]
    declared = []
    for name, annotation, default in triples:
        declared.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=REQUIRED if default is None else names.evaluate(default),
                annotation=names.evaluate(annotation),
            )
        )
    return read_docstring(ast.get_docstring(found[0])), tuple(declared)


# Commands and their flags.

#: The groups of ``hardsynth --help``, in its order.
GROUPS = {
    "daily": "every day: which model is better, and where F fails",
    "benchmark": "a benchmark: make, run and judge a suite",
    "research": "research, and what is around it",
}
#: Letters of flags that mean the same in every command.
LETTERS = {
    "out": "-o",
    "quiet": "-q",
    "jobs": "-j",
    "userdir": "-u",
    "results": "-r",
    "task": "-t",
    "fold": "-f",
    "benchmark": "-b",
}
#: Parameters of which one flag takes all words that follow it: ``--results A B``.
MANY = ("results", "predictions", "takers")
#: Parameters that name what a command writes.
WRITTEN = ("out", "html", "rows", "record", "junit", "logs")
#: What parameters mean that several commands have.
SHARED = {
    "suite": ("DIR", "the suite's folder"),
    "jobs": ("N", "number of processes, 0 for one per core; never changes a result"),
    "quiet": ("", "print errors only"),
    "json": ("", "print the result as JSON"),
    "seed": ("N", "random seed"),
    "level": ("X", "confidence level of the intervals"),
    "force": ("", "replace a suite that was made with other settings"),
    "trust_suite": (
        "",
        "fit any class that the suite names; it can run any code, so use this for your own "
        "suites only",
    ),
    "trust_pickle": (
        "",
        "load pickle or joblib files; they can run any code, so use this for your own files only",
    ),
}
#: A number of processes, 0 for one per core.
Jobs = CountOrNone
#: A suite's folder, by position or behind ``-u``.
Suite = Path
#: What the functions take that a command calls, by the titles of the groups of their flags.
Parts = Mapping[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A flag or an argument of a command.

    Attributes
    ----------
    name : str
        Of the parameter; of a setting its path, with dots.
    names : tuple of str
        As one types it; empty for an argument without dashes alone.
    annotation, default : object
    text : str
        What it means, with its default.
    metavar : str
        What stands for its value.
    group : str
        The title it has where all flags are listed.
    takes_several_words : bool
        ``--results A B`` beside ``--results A --results B``.
    """

    name: str
    names: tuple[str, ...]
    annotation: Any
    default: Any = None
    text: str = ""
    metavar: str = ""
    group: str = "flags"
    takes_several_words: bool = False

    @property
    def is_positional(self) -> bool:
        """Whether it is an argument, which has its meaning by its place."""
        return self.group == "arguments"

    @property
    def is_required(self) -> bool:
        """Whether a command line without it is wrong."""
        return self.default is REQUIRED

    @property
    def is_setting(self) -> bool:
        """Whether it gives a value of the configuration, not of the function."""
        return self.group.endswith(" settings")

    @property
    def title(self) -> str:
        """How messages call it."""
        return self.metavar if self.is_positional else self.names[-1]

    @property
    def shown(self) -> str:
        """How a help lists it: ``-o, --out DIR``."""
        if self.is_positional:
            return self.metavar
        return f"{', '.join(self.names)} {self.metavar}".strip()

    def parameter(self, *, for_completion: bool = False) -> inspect.Parameter:
        """Return the parameter from which cyclopts makes the flag.

        Its words are texts, which :meth:`read` converts, unless a shell is to complete them.
        """
        word: Any = self._completed() if for_completion else str
        negative = ""
        kind: Any = inspect.Parameter.KEYWORD_ONLY
        # a list, since any flag may be given twice
        annotation: Any = list[word]
        if values.is_switch(self.annotation):
            annotation = bool
            if self.default is None:
                negative = "--no-" + self.names[-1].removeprefix("--")
        elif values.is_pair(self.annotation):
            annotation = list[tuple[word, word]]
        elif self.is_positional:
            annotation = word
            kind = inspect.Parameter.POSITIONAL_ONLY
            if self.names:
                kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            elif values.is_list(self.annotation):
                kind = inspect.Parameter.VAR_POSITIONAL
        # what is required is asked for by the parser's caller, which names all that is missing
        default = REQUIRED if kind is inspect.Parameter.VAR_POSITIONAL else None
        # a script for a shell would take a switch that may be None for a flag with a value
        if not for_completion and default is None:
            annotation = annotation | None
        notes = Parameter(
            name=self.names,
            help=self.text,
            negative=negative,
            consume_multiple=self.takes_several_words or None,
        )
        return inspect.Parameter(
            self.name.replace(".", "__"),
            kind,
            default=default,
            annotation=Annotated[annotation, notes],
        )

    def read(self, given: Any) -> Any:
        """Return the value that stands for what cyclopts found; the default where it found none."""
        if given is None:
            return self.default
        if isinstance(given, bool):
            return given
        words = [given] if isinstance(given, str) else given
        if values.is_mapping(self.annotation):
            return words
        if not values.is_list(self.annotation):
            words = words[-1]
        return values.read_value(self.title, self.annotation, words)

    def _completed(self) -> Any:
        """Return the type of what a shell completes: a path, one of a few words, or any text."""
        if known := values.choices(self.annotation):
            return Literal[tuple(known)]
        return Path if self.metavar.rpartition("=")[2].strip("[]") in PATHS else str


#: What stands for a path, which a shell completes.
PATHS = (
    "FILE",
    "TABLE",
    "DATA",
    "MODEL",
    "SOURCE",
    "DIR",
    "FOLDER",
    "OUT",
    "SUITE|TABLE",
)


#: Parameters of commands that no flag gives; ``typed`` has the flags of the command line by name.
INJECTED = ("settings", "words", "extra", "typed", "parts")
#: Flags that mean the same whatever a command is given.
_EVERYWHERE = ("jobs", "quiet", "json")


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a command takes of its flags, where it is given something of one kind.

    Attributes
    ----------
    where : str
        What the command is given: ``on a suite``.
    holds : callable
        Takes the arguments by name, and returns whether they are of this kind.
    only : collection of str, optional
        Flags that are used, others are not: their names, their groups, or stages of settings; that
        of a setting is its path, with dots.
    unused : collection of str
        Flags that are not used, where ``only`` does not say it.
    instead : str
        What to type.

    Examples
    --------
    >>> form = Form(where="on a suite", only=["source"], instead="leave it out")
    >>> form.check({"rule": Flag(name="rule", names=("--rule",), annotation=str)})
    Traceback (most recent call last):
        ...
    amlb_ext.core.errors.ConfigError: --rule has no effect on a suite (leave it out)
    """

    where: str
    holds: Callable[[Mapping[str, Any]], bool] = bool
    only: Collection[str] | None = None
    unused: Collection[str] = ()
    instead: str = "leave it out"

    def check(self, typed: Mapping[str, Flag]) -> None:
        """Raise for the first flag of the command line that has no effect."""
        for name, flag in typed.items():
            ways = {name, name.partition(".")[0], flag.group}
            is_unused = bool(ways & set(self.unused))
            if self.only is not None:
                is_unused = not ways & {*self.only, *_EVERYWHERE}
            if is_unused:
                raise ConfigError(
                    f"{flag.title} has no effect {self.where}", self.instead
                )


@dataclass(frozen=True, kw_only=True)
class Command:
    """A function that a shell can call.

    Attributes
    ----------
    function : callable
        Returns the exit status, or an answer: then it has the flags ``--quiet`` and ``--json``.
    name, group : str
    of : mapping of str to str
        Functions or records whose parameters ``parts`` has, by the title of the group that their
        flags have.
    without : collection of str
        Parameters of these that are no flags.
    flag_names : mapping of str to str
        Flags that are not called as their parameters are.
    settings : str or collection
        What ``settings`` stands for: ``all``, those of a stage, or those named.
    everyday : mapping of str to sequence of str
        What ``--help`` shows, by title; all flags where empty.
    refused : mapping of str to str
        What is said of flags that other commands have and this one cannot honour.
    forms : sequence of Form
        What it takes of its flags, by what it is given.
    """

    function: Callable[..., int | Answer]
    name: str
    group: str
    of: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()
    flag_names: Mapping[str, str] = field(default_factory=dict)
    settings: str | Collection[SettingPath] = ()
    everyday: Mapping[str, Sequence[str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    forms: Sequence[Form] = ()

    @property
    def takes_extra(self) -> bool:
        """Whether what follows ``--`` is for another program."""
        return "extra" in inspect.signature(self.function).parameters

    @cached_property
    def doc(self) -> Docstring:
        """What the function's docstring says."""
        return read_docstring(self.function.__doc__)

    @cached_property
    def called(self) -> dict[str, tuple[Docstring, Declared]]:
        """What the functions declare that ``parts`` stands for."""
        return {title: read_declaration(place) for title, place in self.of.items()}

    @property
    def returns_answer(self) -> bool:
        """Whether the function leaves the printing to :class:`Answer`."""
        return self.function.__annotations__["return"] == "Answer"

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """The flags and arguments, in the order in which a help lists all of them."""
        called = self.called
        texts: dict[str, tuple[str, str]] = {}
        for outer, _ in called.values():
            texts |= outer.parameters
        texts |= SHARED | self.doc.parameters
        own = dict(inspect.signature(self.function, eval_str=True).parameters)
        for name in ("quiet", "json") if self.returns_answer else ():
            kind = inspect.Parameter.KEYWORD_ONLY
            switch = inspect.Parameter(name, kind, default=False, annotation=bool)
            own.setdefault(name, switch)
        flags = [
            self._flag(parameter, texts)
            for parameter in own.values()
            if parameter.name not in INJECTED
        ]
        for title, (_, parameters) in called.items():
            for declared in parameters:
                if declared.name not in own and declared.name not in self.without:
                    flags.append(self._flag(declared, texts, title))
        if self.settings:
            chosen = choose_settings(self.settings)
            flags += [_setting_flag(path, entry) for path, entry in chosen]
        return tuple(flags)

    def _flag(
        self,
        declared: inspect.Parameter,
        texts: Mapping[str, tuple[str, str]],
        group: str = "flags",
    ) -> Flag:
        name = declared.name
        is_positional = declared.kind is declared.POSITIONAL_OR_KEYWORD
        kind, text = texts.get(name, ("", ""))
        # a docstring has sentences, a list of flags has not; AMLB and YAML stay as they are
        if text[1:2].islower():
            text = text[0].lower() + text[1:].removesuffix(".")
        names: tuple[str, ...]
        if name in self.flag_names:
            names = tuple(filter(None, [self.flag_names[name]]))
        elif is_positional:
            # a suite may be named by a flag as well, as in `hardsynth run`
            names = ("-u",) if name == "suite" else ()
        else:
            letter = (LETTERS[name],) if name in LETTERS else ()
            names = (*letter, "--" + name.replace("_", "-"))
        return Flag(
            name=name,
            names=names,
            annotation=declared.annotation,
            default=declared.default,
            text=text + _more(declared, text),
            metavar=_metavar(declared, kind),
            group="arguments" if is_positional else group,
            takes_several_words=name in MANY and values.is_list(declared.annotation),
        )

    @property
    def usage(self) -> str:
        """The shape of a command line."""
        words = [f"hardsynth {self.name}"]
        for flag in self.flags:
            many = " ..." if values.is_list(flag.annotation) else ""
            if flag.is_positional:
                word = f"{flag.metavar}{many}"
                words.append(word if flag.is_required else f"[{word}]")
            elif flag.is_required:
                words.append(f"{flag.names[-1]} {flag.metavar}")
        return " ".join([*words, "[flags]"])

    def find(self, name: str) -> Flag:
        """Return a flag by its parameter's name or as one types it."""
        for flag in self.flags:
            if name == flag.name or name in flag.names:
                return flag
        raise ValueError(f"{self.name} has no flag {name}")

    def add_to(self, app: App, *, for_completion: bool = False) -> None:
        """Let cyclopts know the command, by the parameters that it reads."""

        def parsed() -> None:
            """Take what cyclopts has read."""

        parameters = [
            flag.parameter(for_completion=for_completion) for flag in self.flags
        ]
        # arguments come before flags
        parameters.sort(key=lambda one: one.kind)
        parsed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(parsed, name=self.name, help=self.doc.summary)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function is called with: what was typed, and defaults for the rest.

        Raises
        ------
        ConfigError
            A value that is not of its type, or that no setting can have.
        """
        arguments: dict[str, Any] = {}
        layer = {}
        for flag in self.flags:
            value = flag.read(given.get(flag.name))
            if not flag.is_setting:
                arguments[flag.name] = value
            elif value is not None:
                layer[tuple(flag.name.split("."))] = value
        if self.settings:
            arguments["settings"] = read_layer(layer)
        return arguments

    def run(self, arguments: dict[str, Any]) -> int:
        """Call the function, and return the exit status.

        Raises
        ------
        ConfigError
            A flag that has no effect for what the command is given.
        """
        for form in self.forms:
            if form.holds(arguments):
                form.check(arguments["typed"])
        self._check_written(arguments)
        if self.returns_answer:
            # no progress beside JSON
            arguments["quiet"] = arguments["quiet"] or arguments["json"]
        parts: dict[str, dict[str, Any]] = {title: {} for title in self.of}
        for flag in self.flags:
            if flag.group in parts:
                parts[flag.group][flag.name] = arguments[flag.name]
        given = {**arguments, "parts": parts}
        own = inspect.signature(self.function).parameters
        answer = self.function(**{name: given[name] for name in own})
        if isinstance(answer, int):
            return answer
        return answer.show(quiet=arguments["quiet"], json=arguments["json"])

    def _check_written(self, arguments: Mapping[str, Any]) -> None:
        """Raise where the command would write over what it reads, or twice to one place."""
        typed = {
            flag.title: arguments.get(flag.name)
            for flag in self.flags
            if flag.name in WRITTEN and arguments.get(flag.name)
        }
        for flag in self.flags:
            given = typed.get(flag.title)
            if given and flag.metavar == "FILE" and Path(given).is_dir():
                raise ConfigError(f"{flag.title} {given} is a folder", "name a file")
        others = {*WRITTEN, *INJECTED}
        read = [value for name, value in arguments.items() if name not in others]
        check_written(typed, read)


#: The folder of a suite that AMLB does not look at.
_OWN = "hardsynth"
#: Where a suite's own files stand.
_PLACES = (("data",), (_OWN,))


def check_written(written: Mapping[str, Any], read: object) -> None:
    """Raise where a file that is to be written is one that is read, or part of a suite that is.

    Parameters
    ----------
    written : mapping of str to path
        By the flag that names it.
    read : object
        Arguments: texts, paths, and whatever holds such.

    Raises
    ------
    ConfigError

    Examples
    --------
    >>> check_written({"--html": Path("page.html")}, [{"G": "g.skops"}])
    >>> check_written({"--html": "a", "--rows": "./a"}, [])
    Traceback (most recent call last):
        ...
    amlb_ext.core.errors.ConfigError: --html and --rows name one file, ./a (give another name)
    """
    known = {Path(path).resolve(): path for path in _paths_in(read)}
    flags: dict[Path, str] = {}
    for flag, given in written.items():
        path = Path(given).expanduser().resolve()
        if path in flags:
            raise ConfigError(
                f"{flags[path]} and {flag} name one file, {given}", "give another name"
            )
        flags[path] = flag
        whole = path if path in known else next(filter(known.get, path.parents), None)
        if path.is_file() and whole is not None:
            place = "" if whole == path else f" in {known[whole]}"
            raise ConfigError(
                f"{flag} {given} would replace a file{place} that the command reads",
                "give another name",
            )
        if whole is not None and path.relative_to(whole).parts[:1] in _PLACES:
            raise ConfigError(
                f"{flag} {given} would stand among the files of {known[whole]}",
                "give a place outside of it",
            )
        made_of = [suite for suite in known if _is_made_of(suite, path)]
        if made_of:
            raise ConfigError(
                f"{flag} {given} would replace the table that {known[made_of[0]]} was made of",
                "give another name",
            )


def _is_made_of(suite: Path, path: Path) -> bool:
    """Whether a suite was made of a file: of its bytes, or of series one of its name."""
    manifest = suite / _OWN / "manifest.json"
    if not (manifest.is_file() and path.is_file()):
        return False
    sources: list[Any] = []
    # damaged ones are told by the command itself
    with contextlib.suppress(
        OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError
    ):
        content = json.loads(manifest.read_text(encoding="utf-8", errors="replace"))
        for table in content.get("tables", []):
            about = table["about"]
            sources += [about["source"], about["settings"].get("baseline")]
        # tables and F's file are known by their bytes
        texts = json.dumps({**content, "files": None})
        return path.name in map(str, sources) or sha256_file(path) in texts
    return False


def _paths_in(given: object) -> Iterator[Path]:
    """Yield the files and suites that arguments name, behind the ``=`` of ``NAME=FILE`` too."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list | tuple):
        for each in given:
            yield from _paths_in(each)
    elif isinstance(given, str | Path):
        for text in {str(given), str(given).partition("=")[2]} - {""}:
            path = Path(text).expanduser()
            with contextlib.suppress(OSError, ValueError):
                if path.is_file() or (path / _OWN / "manifest.json").is_file():
                    yield path


Function = TypeVar("Function", bound=Callable[..., "int | Answer"])
#: The commands by name, in the order in which their modules stand in the program.
COMMANDS: dict[str, Command] = {}


def command(**options: Any) -> Callable[[Function], Function]:
    """Make a command of a function; ``options`` are those of :class:`Command`."""

    def register(function: Function) -> Function:
        name = options.pop("name", function.__name__)
        COMMANDS[name] = Command(function=function, name=name, **options)
        return function

    return register


def _more(declared: inspect.Parameter, text: str) -> str:
    """Return what is added to an explanation: that a flag can be repeated, and the default."""
    more = ""
    if values.is_list(declared.annotation) or values.is_mapping(declared.annotation):
        more = "; repeat the flag for several" if "repeat" not in text else ""
    default = declared.default
    if default in (None, REQUIRED, "", ()) or default is False or "default" in text:
        return more
    return f"{more} (default: {default})"


def _metavar(declared: inspect.Parameter, kind: str) -> str:
    """Return what stands for a value, from the docstring's type or from the annotation."""
    word = kind.removesuffix(", optional")
    if word and word == word.upper():
        return word
    if values.is_switch(declared.annotation):
        return ""
    if declared.kind is declared.POSITIONAL_OR_KEYWORD:
        return declared.name.upper()
    any_text = "FILE" if "path" in word else "NAME"
    return values.metavar(declared.annotation) or any_text


def _setting_flag(path: SettingPath, entry: Any) -> Flag:
    letter = LETTERS.get(path[-1]) if path == ("source", "userdir") else None
    names = tuple(filter(None, [letter, f"--{flag_name(path)}"]))
    default = default_text(entry)
    text = " ".join((entry.description or "").split())
    is_switch = entry.annotation is bool
    return Flag(
        name=".".join(path),
        names=names,
        # the words themselves: pydantic checks them, for files as well
        annotation=bool if is_switch else list[str],
        text=f"{text} (default: {default})" if default else text,
        metavar="" if is_switch else metavar(entry),
        group=f"{path[0] if len(path) > 1 else 'suite'} settings",
        takes_several_words=takes_several_words(entry),
    )


# The modules of the commands, in the order of hardsynth --help.

#: A new command stands in one of these, or in a module of its own that is named here.
_MODULES = (
    *("demo", "compare", "estimate", "gate"),
    *("generate", "verify", "certify", "run", "report", "export", "install"),
    *("relations", "publish", "tasks", "list_names"),
)


@cache
def all_commands() -> Mapping[str, Command]:
    """Return the commands by name, in the order of the help, whatever was imported first."""
    modules = [import_module(f"amlb_ext.cli.{module}").__name__ for module in _MODULES]

    def place(command: Command) -> int:
        return modules.index(command.function.__module__)

    return {command.name: command for command in sorted(COMMANDS.values(), key=place)}
