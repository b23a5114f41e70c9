"""Directives that write the reference from the program itself: its commands and its settings.

NOTE[OWN]: cyclopts' directive reads help texts as reStructuredText, so ``<task>_hard`` becomes a
broken reference; autodoc-pydantic shows Python names, but users type flags. Here help is plain
text.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from pydantic import BaseModel
from sphinx import addnodes

from amlb_ext.cli.command import Command, all_commands
from amlb_ext.cli.main import flags_by_group
from amlb_ext.cli.settings import FILE_ONLY, flag_name, list_settings
from amlb_ext.core.config import GenerateConfig

#: A command with more settings than this is sent to the page of settings for them.
MANY_SETTINGS = 20


class CommandReference(Directive):
    """``hardsynth-command``: description, usage and flags of one command."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the command."""
        return list(_command_nodes(all_commands()[self.arguments[0]]))


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
            # a record is one setting, whose parts a file may change
            inner = getattr(field.annotation, "model_fields", {})
            for key, part in inner.items():
                details = [_values(part.annotation), f"default: {_shown(part.default)}"]
                told = part.description or ""
                entries += _definition(f"{name}.{key}", details, told)
        return [entries]


def _command_nodes(command: Command) -> Iterator[nodes.Node]:
    """Yield what the page says of a command."""
    yield nodes.paragraph("", command.doc.description or command.doc.summary)
    yield nodes.literal_block("", command.usage, language="text")
    if command.doc.examples:
        lines = [_folded(line) for line in command.doc.examples.splitlines()]
        yield nodes.literal_block("", "\n".join(lines), language="text")
    groups = dict(flags_by_group(command, everything=True))
    settings = [title for title in groups if title.endswith(" settings")]
    n_settings = sum(len(groups[title]) for title in settings)
    if n_settings > MANY_SETTINGS:
        for title in settings:
            del groups[title]
        yield nodes.paragraph(
            "",
            f"Every setting is a flag of this command, too: {n_settings} of them. "
            "They stand on the page of settings.",
        )
    for title, flags in groups.items():
        yield nodes.rubric("", title[0].upper() + title[1:])
        entries = nodes.definition_list()
        for flag in flags:
            entries += _definition(flag.shown, [], flag.text)
        yield entries


def _folded(command: str, width: int = 84) -> str:
    """Return a command on lines that fit beside the navigation, broken before its flags."""
    lines = [""]
    for part in re.split(r"(?= --?[a-z])", command):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += part
    return "\n".join(lines)


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
    if origin is typing.Annotated:
        return _values(arguments[0])
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
    if isinstance(default, BaseModel):
        return "those below"
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
