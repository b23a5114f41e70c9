"""From matplotlib's SVG to an element that is safe, small and alone with its names in a page.

Also what both kinds of charts do to text and numbers before they draw them.
"""

from __future__ import annotations

import hashlib
import re
from typing import get_args
from xml.etree import ElementTree as ET

import numpy as np

from amlb_ext.report.model import Chart, ColourRole

#: Longest name in a legend or on an axis of categories.
LONGEST = 32
_ROLES = (*get_args(ColourRole), "grid")
#: What to draw a role, or ``grid``, with; :func:`inline_svg` puts in the page's colour.
COLOUR = {role: f"#fe0d{i:02x}" for i, role in enumerate(_ROLES)}
_STAND_IN = re.compile(r"#fe0d([0-9a-f]{2})")
_URL = re.compile(r"url\(#(.*?)\)")
# Control characters, halves of surrogate pairs and what else XML forbids; characters that turn
# the direction of the text around them.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def one_line(text: object, longest: int = LONGEST) -> str:
    """Return text on one line, without control characters, cut with an ellipsis.

    Not escaped: that is for whoever puts it into a language.

    Examples
    --------
    >>> one_line("a name\\n that is rather long", 12)
    'a name that…'
    """
    line = _UNFIT.sub("", " ".join(str(text).split()))
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def axis_numbers(values: object) -> np.ndarray:
    """Return a flat array of floats, NaN for what is too large for an axis.

    Examples
    --------
    >>> axis_numbers([1, np.inf, -1e308])
    array([ 1., nan, nan])
    """
    flat = np.asarray(values, dtype=float).ravel()
    return np.where(np.abs(flat) < 1e300, flat, np.nan)


def legend_names(chart: Chart) -> list[str]:
    """Return the names that a legend tells apart; none when the axis names the series.

    Examples
    --------
    >>> from amlb_ext.report.model import Series
    >>> spot = np.zeros(1)
    >>> a, b = (Series(name, "intervals", spot, spot) for name in "ab")
    >>> legend_names(Chart("k", "t", "", "x", "", (a, b)))
    ['a', 'b']
    >>> legend_names(Chart("k", "t", "", "x", "", (a, b), y_categories=("b", "a")))
    []
    """
    names = [s.name for s in chart.series if s.name and s.name not in chart.y_categories]
    return names if len(names) > 1 else []


def inline_svg(drawn: str, key: str, title: str, about: str) -> str:
    """Return what matplotlib drew as an ``<svg>`` element for a page.

    Colours of :data:`COLOUR` become ``var(--c-ROLE)``; ids begin with a digest of ``key``; the
    font is the page's; numbers have two decimals; nothing refers to anything outside.

    Parameters
    ----------
    drawn : str
        A whole SVG file.
    key : str
        Unique in the page.
    title, about : str
        For those who cannot see it.

    Returns
    -------
    str

    Examples
    --------
    >>> drawn = '<svg viewBox="0 0 9 9"><path d="M 0 1.234567" style="fill: #fe0d00"/></svg>'
    >>> text = inline_svg(drawn, "key", "Title", "A < B")
    >>> text[text.index("<title") :]  # doctest: +NORMALIZE_WHITESPACE
    '<title id="s2c70e1-t">Title</title><desc id="s2c70e1-d">A &lt; B</desc><path
     d="M0 1.23" style="fill:var(--c-ink)" /></svg>'
    """
    tree = ET.fromstring(drawn)
    prefix = "s" + hashlib.sha256(key.encode()).hexdigest()[:6]
    names: dict[str, str] = {}
    for node in tree.iter():
        node.tag = node.tag.rpartition("}")[2]
        node.attrib = {name.rpartition("}")[2]: value for name, value in node.attrib.items()}
        for value in node.attrib.values():
            for name in _URL.findall(value) + re.findall("^#(.*)", node.get("href", "")):
                names.setdefault(name, f"{prefix}-{len(names)}")
    for node in list(tree.iter()):
        for child in list(node):
            if child.tag in ("metadata", "style") or _unseen(child):
                node.remove(child)
    for node in tree.iter():
        _tidy(node, names)
    for node in tree.iter():  # what all marks have in common is said once
        looks = {child.get("style") for child in node if child.tag == "use"}
        if (
            len(looks) == 1
            and all(child.tag == "use" for child in node)
            and "style" not in node.attrib
        ):
            node.set("style", looks.pop() or "")
            for child in node:
                child.attrib.pop("style", None)
    tree.attrib = {
        "xmlns": "http://www.w3.org/2000/svg", "class": "drawing", "role": "img",
        "viewBox": tree.get("viewBox", ""), "aria-labelledby": f"{prefix}-t {prefix}-d",
        "style": "stroke-linejoin:round;stroke-linecap:butt",
    }  # fmt: skip
    for place, (tag, text) in enumerate((("title", title), ("desc", about))):
        node = ET.Element(tag, {"id": f"{prefix}-{tag[0]}"})
        node.text = one_line(text, 2000)
        tree.insert(place, node)
    return ET.tostring(tree, encoding="unicode")


def _unseen(node: ET.Element) -> bool:
    return node.tag == "path" and node.get("style", "") in ("fill: none", "fill: none; opacity: 0")


def _tidy(node: ET.Element, names: dict[str, str]) -> None:
    """Shorten one node, give it its colours and its own names."""
    old, node.attrib, node.tail = node.attrib, {}, None
    if node.tag != "text":
        node.text = None
    if "id" in old and old["id"] in names:
        node.set("id", names[old["id"]])
    if "href" in old:
        node.set("href", "#" + names[old["href"][1:]])
    style = [part.split(": ", 1) for part in old.get("style", "").split("; ") if ": " in part]
    style += [["fill", old["fill"]]] if "fill" in old else []
    for name, value in old.items():
        if name in ("id", "href", "style", "fill") or value.startswith("rotate(-0 "):
            continue
        node.set(name, _short(_own(value, names), 1 if node.tag == "use" else 2))
    if "d" in old:
        node.set("d", re.sub(r"\s*([A-Za-z])\s*", r"\1", node.get("d", "")).strip())
    looks = []
    for name, value in style:
        if name == "font":  # matplotlib before 3.9
            name, value = "font-size", re.findall(r"[\d.]+px", value)[0]
        if name != "font-family":
            looks.append(f"{name}:{_short(_own(value, names), 2)}")
    if looks:
        colour = _STAND_IN.sub(lambda m: f"var(--c-{_ROLES[int(m[1], 16)]})", ";".join(looks))
        node.set("style", colour)


def _own(value: str, names: dict[str, str]) -> str:
    return _URL.sub(lambda match: f"url(#{names[match[1]]})", value)


def _short(value: str, digits: int) -> str:
    def number(match: re.Match[str]) -> str:
        return f"{float(match[0]):.{digits}f}".rstrip("0").rstrip(".")

    return re.sub(r"-?\d+\.\d+", number, value)
