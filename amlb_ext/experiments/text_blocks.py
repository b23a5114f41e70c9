"""A table of text with its heading, as results of every paper are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amlb_ext.core.display import markdown_table


@dataclass(frozen=True, kw_only=True)
class Block:
    """A table of text.

    Attributes
    ----------
    heading : str
    head : list of str
    lines : list of list of str
        The first entry names the line.
    """

    heading: str
    head: list[str]
    lines: list[list[str]]


def blocks_markdown(title: str, blocks: Sequence[Block], notes: Sequence[str]) -> str:
    """Return blocks under a title as Markdown, notes at the end.

    Examples
    --------
    >>> block = Block(heading="adult", head=["method", "ours"], lines=[["dev set", "0.2"]])
    >>> blocks_markdown("Table 1", [block], ["Five draws."]).splitlines()[:3]
    ['# Table 1', '', '## adult']
    """
    lines = [f"# {title}", ""]
    for block in blocks:
        table = markdown_table(block.head, block.lines)
        lines += [f"## {block.heading}", "", table, ""]
    lines += [f"- {note}" for note in notes]
    return "\n".join(lines).rstrip() + "\n"
