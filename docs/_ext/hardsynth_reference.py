"""Directives that write the reference from the program itself: its commands and its settings.

NOTE[OWN]: sphinx-argparse reads help texts as reStructuredText, so ``<task>_hard`` becomes a broken
reference; autodoc-pydantic shows Python names, but users type flags. Here help is plain text.
"""

from __future__ import annotations

import argparse
import re
import typing
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx import addnodes

from amlb_ext.cli.flags import FILE_ONLY, flag_name, list_settings
from amlb_ext.cli.main import build_parser
from amlb_ext.core.config import GenerateConfig

#: A command with more settings than this is sent to the page of settings for them.
MANY_SETTINGS = 20


class CommandReference(Directive):
    """``hardsynth-command``: description, usage and flags of one command."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the command."""
        top = build_parser()
        chosen = _commands(top)[self.arguments[0]]
        return list(_parser_nodes(chosen))


class SettingReference(Directive):
    """``hardsynth-settings``: the settings of one stage, or those above all stages (``suite``)."""

    required_arguments = 1
    option_spec: typing.ClassVar = {"intro": directives.flag}
    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return a definition list of the stage's settings."""
        stage = self.arguments[0]
        entries = nodes.definition_list()
        for path, field in list_settings():
            if (path[0] if len(path) > 1 else "suite") != stage:
                continue
            name = ".".join(path)
            flag = "in a file only" if path in FILE_ONLY else f"--{flag_name(path)}"
            details = [flag, _values(field.annotation)]
            default = field.get_default(call_default_factory=True)
            details.append(f"default: {_shown(default)}")
            entries += _definition(name, details, field.description or "")
            # a record is one flag, which names what it changes
            inner = getattr(field.annotation, "model_fields", {})
            for key, part in inner.items():
                details = [_values(part.annotation), f"default: {_shown(part.default)}"]
                told = part.description or ""
                entries += _definition(
                    f"{name}.{key}", [f"{flag} {key}=…", *details], told
                )
        return [entries]


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _parser_nodes(parser: argparse.ArgumentParser) -> Iterator[nodes.Node]:
    """Yield what a command's page says, and the same of each command below it."""
    yield nodes.paragraph("", parser.description or "")
    below = _commands(parser)
    if not below:
        yield nodes.literal_block("", _usage(parser), language="text")
    examples = getattr(parser, "examples", "")
    if examples:
        lines = [_folded(line) for line in examples.strip().splitlines()]
        yield nodes.literal_block("", "\n".join(lines), language="text")
    settings = {".".join(path) for path, _ in list_settings()}
    shown = [action for action in parser._actions if _is_shown(action)]
    are_settings = [action for action in shown if action.dest in settings]
    leave_out = set()
    if len(are_settings) > MANY_SETTINGS:
        leave_out = {action.dest for action in are_settings}
        yield nodes.paragraph(
            "",
            f"Every setting is a flag of this command, too: {len(are_settings)} of them. "
            "They stand on the page of settings.",
        )
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if _is_shown(action) and action.dest not in leave_out
        ]
        if actions:
            yield nodes.rubric("", _group_title(group))
            entries = nodes.definition_list()
            for action in actions:
                entries += _definition(_flags(action), [], _help(parser, action))
            yield entries
    for name, command in below.items():
        section = nodes.section(ids=[nodes.make_id(f"{parser.prog}-{name}")])
        section += nodes.title("", command.prog)
        for node in _parser_nodes(command):
            section += node
        yield section


def _is_shown(action: argparse.Action) -> bool:
    """Whether an action is a flag or argument of the command's own, and has a help text."""
    if isinstance(action, argparse._SubParsersAction) or _prints_help(action):
        return False
    return bool(action.help) and action.help != argparse.SUPPRESS


def _prints_help(action: argparse.Action) -> bool:
    return bool({"--help", "--help-all"} & set(action.option_strings))


def _group_title(group: argparse._ArgumentGroup) -> str:
    known = {"positional arguments": "Arguments", "options": "Flags"}
    title = group.title or "options"
    return known.get(title, title[0].upper() + title[1:])


def _folded(command: str, width: int = 84) -> str:
    """Return a command on lines that fit beside the navigation, broken before its flags."""
    lines = [""]
    for part in re.split(r"(?= --?[a-z])", command):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += part
    return "\n".join(lines)


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the shape of a command in one line: its arguments, and that flags may follow."""
    words = [parser.prog]
    for action in parser._actions:
        if _prints_help(action):
            continue
        value = _value(action)
        if not action.option_strings:
            optional = action.nargs in ("*", "?")
            words.append(f"[{value}]" if optional else value)
        elif action.required:
            words.append(f"{action.option_strings[-1]} {value}".strip())
    return " ".join([*words, "[FLAGS]"])


def _flags(action: argparse.Action) -> str:
    """Return an action's flags with the name of their value: ``-o, --out DIR``."""
    value = _value(action)
    if not action.option_strings:
        return value
    flags = ", ".join(action.option_strings)
    return f"{flags} {value}".strip()


def _value(action: argparse.Action) -> str:
    """Return what stands for an action's value."""
    if action.nargs == 0:
        return ""
    name: Any = action.metavar
    if name is None and action.choices is not None:
        name = "{" + ",".join(str(choice) for choice in action.choices) + "}"
    if name is None:
        name = action.dest if not action.option_strings else action.dest.upper()
    if isinstance(name, tuple):
        return " ".join(name)
    return f"{name} ..." if action.nargs in ("*", "+") else str(name)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return an action's help with its default written out."""
    values = {**vars(action), "prog": parser.prog}
    return (action.help or "") % values


def _definition(term: str, details: list[str], text: str) -> nodes.definition_list_item:
    """Return one entry: what is typed, what it takes, and what it does."""
    item = nodes.definition_list_item()
    head = nodes.term()
    head += nodes.literal("", term)
    item += head
    body = nodes.definition()
    sentence = text[:1].upper() + text[1:]
    body += _linked(sentence + ("" if sentence.endswith(".") else "."))
    if details:
        line = nodes.paragraph(classes=["setting-details"])
        for number, detail in enumerate(filter(None, details)):
            if number:
                line += nodes.Text(" · ")
            line += nodes.Text(detail)
        body += line
    item += body
    return item


def _linked(text: str) -> nodes.paragraph:
    """Return a paragraph in which the pages that a help text names are links."""
    paragraph = nodes.paragraph()
    for part in re.split(r"(docs/[\w/-]+\.md)", text):
        if not part.startswith("docs/"):
            paragraph += nodes.Text(part)
            continue
        target = "/" + part.removeprefix("docs/").removesuffix(".md")
        link = addnodes.pending_xref(
            "", refdomain="std", reftype="doc", reftarget=target, refexplicit=True
        )
        link += nodes.inline("", part)
        paragraph += link
    return paragraph


def _values(annotation: Any) -> str:
    """Return the values that a setting takes, in words."""
    arguments = typing.get_args(annotation)
    options = [part for part in arguments if part is not type(None)]
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return " | ".join(str(option) for option in options)
    if origin is dict:
        return "names with values"
    if origin is tuple:
        return "a list"
    if options and len(options) < len(arguments):
        return _values(options[0])
    names = {bool: "on or off", int: "whole number", float: "number", str: "text"}
    return names.get(annotation, "")


def _shown(default: Any) -> str:
    """Return a default as a user would write it."""
    if default is True or default is False:
        return "on" if default else "off"
    if default in (None, (), {}, ""):
        return "none"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return re.sub(r"\.0$", "", str(default))


def keep_errors_beside_numbers(app: Any, name: str, source: list[str]) -> None:
    """Keep a number and its standard error on one line in the cells of narrow tables."""
    source[0] = re.sub(
        r"^\|.*$",
        lambda row: row[0].replace(" ± ", "\u00a0±\u00a0"),
        source[0],
        flags=re.M,
    )


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx of the directives."""
    assert GenerateConfig.model_fields  # the settings can be read
    app.add_directive("hardsynth-command", CommandReference)
    app.add_directive("hardsynth-settings", SettingReference)
    app.connect("source-read", keep_errors_beside_numbers)
    return {
        "version": "2",
        # raise it with what the pages are read into, so that all are read anew
        "env_version": 2,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
