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
#: What to draw a role, or ``grid``, with; :func:`inline_svg` puts in the page's colour, a CSS
#: variable, which matplotlib does not know.
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


def interval_bound(bound: np.ndarray | None, length: int) -> np.ndarray:
    """Return one side of a series' intervals, NaN where there is none."""
    return np.full(length, np.nan) if bound is None else axis_numbers(bound)


def legend_names(chart: Chart) -> list[str]:
    """Return the names that a legend tells apart; none when the axis names the series.

    Examples
    --------
    >>> from amlb_ext.report.model import ChartSeries
    >>> spot = np.zeros(1)
    >>> a, b = (ChartSeries(name, "intervals", spot, spot) for name in "ab")
    >>> legend_names(Chart("k", "t", "", "x", "", (a, b)))
    ['a', 'b']
    >>> legend_names(Chart("k", "t", "", "x", "", (a, b), y_categories=("b", "a")))
    []
    """
    names = []
    for series in chart.series:
        if series.name and series.name not in chart.y_categories:
            names.append(series.name)
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
    for node in tree.iter():
        # A page's SVG needs no namespaces: {http://www.w3.org/1999/xlink}href is href.
        node.tag = _without_namespace(node.tag)
        node.attrib = {
            _without_namespace(name): node.attrib[name] for name in node.attrib
        }
    ids = _short_ids(tree, prefix)
    # Lists, for removing a child would make the iteration skip its neighbour.
    for node in list(tree.iter()):
        for child in list(node):
            if child.tag in ("metadata", "style") or _is_invisible(child):
                node.remove(child)
    for node in tree.iter():
        _tidy_node(node, ids)
    for node in tree.iter():
        _hoist_common_style(node)

    tree.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "drawing",
        "role": "img",
        "viewBox": tree.get("viewBox", ""),
        "aria-labelledby": f"{prefix}-t {prefix}-d",
        "style": "stroke-linejoin:round;stroke-linecap:butt",
    }
    for position, (tag, text) in enumerate((("title", title), ("desc", about))):
        node = ET.Element(tag, {"id": f"{prefix}-{tag[0]}"})
        node.text = one_line(text, 2000)
        tree.insert(position, node)
    return ET.tostring(tree, encoding="unicode")


def _without_namespace(name: str) -> str:
    return name.rpartition("}")[2]


def _short_ids(tree: ET.Element, prefix: str) -> dict[str, str]:
    """Return a short id for each id that something refers to; the others are not needed."""
    ids: dict[str, str] = {}
    for node in tree.iter():
        for value in node.attrib.values():
            references = _URL.findall(value) + re.findall(
                "^#(.*)", node.get("href", "")
            )
            for name in references:
                ids.setdefault(name, f"{prefix}-{len(ids)}")
    return ids


def _is_invisible(node: ET.Element) -> bool:
    # Backgrounds of the figure and the axes: matplotlib writes them even where they are clear.
    return node.tag == "path" and node.get("style", "") in (
        "fill: none",
        "fill: none; opacity: 0",
    )


def _hoist_common_style(node: ET.Element) -> None:
    """Say once, on the parent, what all marks of a series have in common."""
    styles = {child.get("style") for child in node if child.tag == "use"}
    has_only_marks = all(child.tag == "use" for child in node)
    if len(styles) == 1 and has_only_marks and "style" not in node.attrib:
        node.set("style", styles.pop() or "")
        for child in node:
            child.attrib.pop("style", None)


def _tidy_node(node: ET.Element, ids: dict[str, str]) -> None:
    """Shorten one node, give it the page's colours and ids of its own."""
    old, node.attrib, node.tail = node.attrib, {}, None
    if node.tag != "text":  # white space between elements
        node.text = None
    if "id" in old and old["id"] in ids:
        node.set("id", ids[old["id"]])
    if "href" in old:
        node.set("href", "#" + ids[old["href"][1:]])
    for name, value in old.items():
        is_idle = value.startswith("rotate(-0 ")
        if name in ("id", "href", "style", "fill") or is_idle:
            continue
        # Marks are the bulk of a chart; a tenth of a point moves none that one could see.
        digits = 1 if node.tag == "use" else 2
        node.set(name, _round_numbers(_with_short_ids(value, ids), digits))
    if "d" in old:
        node.set("d", re.sub(r"\s*([A-Za-z])\s*", r"\1", node.get("d", "")).strip())
    style = _tidy_style(old, ids)
    if style:
        node.set("style", style)


def _tidy_style(attributes: dict[str, str], ids: dict[str, str]) -> str:
    """Return the style of a node with the page's colours, without its font."""
    properties = []
    for declaration in attributes.get("style", "").split("; "):
        name, colon, value = declaration.partition(": ")
        if colon:
            properties.append((name, value))
    if "fill" in attributes:
        properties.append(("fill", attributes["fill"]))
    declarations = []
    for name, value in properties:
        if name == "font":  # matplotlib before 3.9 writes size and family together
            name, value = "font-size", re.findall(r"[\d.]+px", value)[0]
        if name != "font-family":
            declarations.append(
                f"{name}:{_round_numbers(_with_short_ids(value, ids), 2)}"
            )
    return _STAND_IN.sub(_page_colour, ";".join(declarations))


def _page_colour(stand_in: re.Match[str]) -> str:
    return f"var(--c-{_ROLES[int(stand_in[1], 16)]})"


def _with_short_ids(value: str, ids: dict[str, str]) -> str:
    return _URL.sub(lambda match: f"url(#{ids[match[1]]})", value)


def _round_numbers(value: str, digits: int) -> str:
    def rounded(match: re.Match[str]) -> str:
        return f"{float(match[0]):.{digits}f}".rstrip("0").rstrip(".")

    return re.sub(r"-?\d+\.\d+", rounded, value)
