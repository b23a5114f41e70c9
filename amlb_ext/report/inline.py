"""Turn matplotlib's SVG into an element for a page, with the page's colours and ids of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import get_args
from xml.etree import ElementTree as ET

from amlb_ext.core.display import shorten_text
from amlb_ext.report.model import Chart, ColourRole

_ROLES = (*get_args(ColourRole), "grid")
#: What to draw a role, or ``grid``, with; :func:`inline_svg` puts in the page's colour, a CSS
#: variable, which matplotlib does not know.
COLOUR = {role: f"#fe0d{i:02x}" for i, role in enumerate(_ROLES)}
_STAND_IN = re.compile(r"#fe0d([0-9a-f]{2})")
_SVG = "{http://www.w3.org/2000/svg}"
#: What a page has once, or not at all: the font, and what says that there is none.
_NOT_SEEN = re.compile(
    r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|font-family:[^;\"]*;?",
    re.S,
)
_XLINK = "http://www.w3.org/1999/xlink"
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(?:href="|url\()#([^")]+)')
#: matplotlib puts each line and each text into a group of its own.
_GROUP_OF_ONE = re.compile(r"<g>(<(?:path|use)[^>]*/>|<text[^>]*>[^<]*</text>)</g>")
_BETWEEN_TAGS = re.compile(r">\n\s*<")
_TAG = re.compile(r"<[^>]+>")
_LONG_NUMBER = re.compile(r"\d+\.\d{3,}")
#: Longest title or description of a chart.
_LONGEST_TEXT = 2000


def inline_svg(
    drawn: str, chart: Chart, told: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return what matplotlib drew as an ``<svg>`` element for a page.

    Colours of :data:`COLOUR` become ``var(--c-ROLE)``; ids begin with a digest of the chart's key;
    the font is the page's; nothing refers to anything outside.

    Parameters
    ----------
    drawn : str
        A whole SVG file.
    chart : Chart
        Its title and description are read out to those who cannot see the picture.
    told : mapping of str to sequence of str, optional
        What each mark of an artist is called where the pointer rests on it, by the artist's gid.

    Returns
    -------
    str

    Examples
    --------
    >>> drawn = (
    ...     '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
    ...     '<path d="M 0 1.234567" style="fill: #fe0d00"/></svg>'
    ... )
    >>> text = inline_svg(drawn, Chart("key", "Title", "A < B"))
    >>> text[text.index("<title") :]  # doctest: +NORMALIZE_WHITESPACE
    '<title id="s2c70e1-t">Title</title><desc id="s2c70e1-d">A &lt; B</desc><path
     d="M 0 1.23" style="fill:var(--c-ink)" /></svg>'
    """
    tree = ET.fromstring(_NOT_SEEN.sub("", drawn))
    for gid, texts in (told or {}).items():
        _tell_marks(tree, gid, texts)
    # Ids of a page are shared by all its charts. They begin with a letter: CSS wants one.
    prefix = f"s{hashlib.sha256(chart.key.encode()).hexdigest()[:6]}"
    tree.attrib = {
        "class": "drawing",
        "role": "img",
        "viewBox": tree.get("viewBox", ""),
        "aria-labelledby": "t d",
    }
    # Screen readers take the title from the first child only.
    tree.insert(0, _text_node("title", chart.title, id="t"))
    tree.insert(1, _text_node("desc", chart.about, id="d"))
    ET.register_namespace("", _SVG.strip("{}"))
    ET.register_namespace("xlink", _XLINK)
    text = ET.tostring(tree, encoding="unicode")
    used = {"t", "d", *_REFERENCE.findall(text)}
    text = _ID.sub(lambda found: found[0] if found[1] in used else "", text)
    text = _TAG.sub(lambda tag: _tidy_tag(tag[0], prefix), text)
    text = _BETWEEN_TAGS.sub("><", text)
    return _GROUP_OF_ONE.sub(r"\1", text)


def _tell_marks(tree: ET.Element, gid: str, texts: Sequence[str]) -> None:
    """Give each mark of an artist its text, as the ``<title>`` that a browser shows."""
    group = tree.find(f".//{_SVG}g[@id='{gid}']")
    if group is None:
        return
    marks = group.findall(f".//{_SVG}use")
    if len(marks) == len(texts):
        for mark, text in zip(marks, texts, strict=True):
            mark.append(_text_node("title", text))


def _text_node(tag: str, text: str, **attributes: str) -> ET.Element:
    node = ET.Element(f"{_SVG}{tag}", attributes)
    node.text = shorten_text(text, _LONGEST_TEXT)
    return node


def _tidy_tag(tag: str, prefix: str) -> str:
    """Return a tag with ids of its own, the page's colours, and numbers of two decimals."""
    tag = tag.replace(' id="', f' id="{prefix}-').replace("url(#", f"url(#{prefix}-")
    tag = tag.replace(' xlink:href="#', f' href="#{prefix}-')
    tag = tag.replace(f' xmlns:xlink="{_XLINK}"', "")
    tag = tag.replace('labelledby="t d"', f'labelledby="{prefix}-t {prefix}-d"')
    # Only inside a style does a browser resolve var(--c-ROLE), not in the attribute "fill".
    tag = re.sub(r' fill="(#fe0d..)"', r' style="fill: \1"', tag)
    tag = _STAND_IN.sub(lambda role: f"var(--c-{_ROLES[int(role[1], base=16)]})", tag)
    # a tenth of a point moves no mark that one could see
    digits = ".1f" if tag.startswith("<use") else ".2f"
    tag = _LONG_NUMBER.sub(lambda number: format(float(number[0]), digits), tag)
    return tag.replace("; ", ";").replace(": ", ":").replace("  ", " ")
