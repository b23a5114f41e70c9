"""Turn matplotlib's SVG into an element for a page: safe, small, with ids of its own.

It also holds what both kinds of charts do to numbers and names before they draw them.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from typing import get_args
from xml.etree import ElementTree as ET

import numpy as np

from amlb_ext.core.display import shorten_text
from amlb_ext.report.model import Chart, ColourRole

# Lines are dense here since nearly each of them rewrites text inside text: the attribute of a
# node, the declaration of a style, the number in a path.

_ROLES = (*get_args(ColourRole), "grid")
#: What to draw a role, or ``grid``, with; :func:`inline_svg` puts in the page's colour, a CSS
#: variable, which matplotlib does not know.
COLOUR = {role: f"#fe0d{i:02x}" for i, role in enumerate(_ROLES)}
_STAND_IN = re.compile(r"#fe0d([0-9a-f]{2})")
_URL = re.compile(r"url\(#(.*?)\)")
_LOCAL_LINK = re.compile("^#(.*)")
_DECIMAL_NUMBER = re.compile(r"-?\d+\.\d+")
_PATH_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
#: Styles of the backgrounds of figure and axes, which matplotlib writes even where they are clear.
_INVISIBLE_STYLES = ("fill: none", "fill: none; opacity: 0")
#: Longest line of a category's name.
_LONGEST_LINE = 32
#: Longest title or description of a chart.
_LONGEST_TEXT = 2000


def axis_numbers(values: object) -> np.ndarray:
    """Return a flat array of floats, NaN for what is too large for an axis.

    Examples
    --------
    >>> axis_numbers([1, np.inf, -1e308])
    array([ 1., nan, nan])
    """
    flat = np.asarray(values, dtype=float).ravel()
    # Beyond this the span of an axis, and so the place of every mark, would overflow.
    is_drawable = np.abs(flat) < 1e300
    return np.where(is_drawable, flat, np.nan)


def interval_bound(bound: np.ndarray | None, length: int) -> np.ndarray:
    """Return one side of a series' intervals, NaN where there is none."""
    if bound is None:
        return np.full(length, np.nan)
    return axis_numbers(bound)


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
    # A single name has nothing to be told apart from; the title says what the chart shows.
    return names if len(names) > 1 else []


def rows_of_categories(chart: Chart) -> float:
    """Return how many rows of marks a chart by name needs room for.

    Series that stand side by side in a category need more than one row of it.
    """
    n_marks = sum(np.size(series.y) for series in chart.series)
    per_category = n_marks / max(1, len(chart.y_categories))
    return len(chart.y_categories) * max(1.0, 0.6 * per_category)


def wrap_category(name: str) -> list[str]:
    """Return the name of a category in two lines at most, each as long as a name may be.

    Examples
    --------
    >>> wrap_category("age > 60 and balance <= 0 and housing is yes")
    ['age > 60 and balance <= 0 and', 'housing is yes']
    """
    lines = textwrap.wrap(shorten_text(name, 2 * _LONGEST_LINE - 4), _LONGEST_LINE)
    return lines or [""]


def inline_svg(drawn: str, *, key: str, title: str, about: str) -> str:
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
        Read out to those who cannot see the picture.

    Returns
    -------
    str

    Examples
    --------
    >>> drawn = '<svg viewBox="0 0 9 9"><path d="M 0 1.234567" style="fill: #fe0d00"/></svg>'
    >>> text = inline_svg(drawn, key="key", title="Title", about="A < B")
    >>> text[text.index("<title") :]  # doctest: +NORMALIZE_WHITESPACE
    '<title id="s2c70e1-t">Title</title><desc id="s2c70e1-d">A &lt; B</desc><path
     d="M0 1.23" style="fill:var(--c-ink)" /></svg>'
    """
    tree = ET.fromstring(drawn)
    # Ids of a page are shared by all its charts. They begin with a letter: CSS wants one.
    digest = hashlib.sha256(key.encode()).hexdigest()
    prefix = f"s{digest[:6]}"
    _strip_namespaces(tree)
    ids = _short_ids(tree, prefix)
    _remove_unseen(tree)
    # Styles are compared as text, so all of them are tidied before any is moved to its parent.
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
    # Screen readers take the title from the first child only.
    tree.insert(0, _text_node("title", f"{prefix}-t", title))
    tree.insert(1, _text_node("desc", f"{prefix}-d", about))
    return ET.tostring(tree, encoding="unicode")


def _text_node(tag: str, node_id: str, text: str) -> ET.Element:
    node = ET.Element(tag, {"id": node_id})
    node.text = shorten_text(text, _LONGEST_TEXT)
    return node


def _strip_namespaces(tree: ET.Element) -> None:
    """Make ``{http://www.w3.org/1999/xlink}href`` a plain ``href``, as SVG inside HTML has it."""
    for node in tree.iter():
        node.tag = _without_namespace(node.tag)
        attributes = {}
        for name, value in node.attrib.items():
            attributes[_without_namespace(name)] = value
        node.attrib = attributes


def _without_namespace(name: str) -> str:
    return name.rpartition("}")[2]


def _short_ids(tree: ET.Element, prefix: str) -> dict[str, str]:
    """Return a short id for each id that something refers to; the others are not needed."""
    ids: dict[str, str] = {}
    for node in tree.iter():
        link_targets = _LOCAL_LINK.findall(node.get("href", ""))
        for value in node.attrib.values():
            for name in (*_URL.findall(value), *link_targets):
                if name not in ids:
                    ids[name] = f"{prefix}-{len(ids)}"
    return ids


def _remove_unseen(tree: ET.Element) -> None:
    """Remove metadata, style sheets and invisible backgrounds."""
    # Both loops run over lists: removing a child would make the iteration skip its neighbour.
    for node in list(tree.iter()):
        for child in list(node):
            is_invisible = child.get("style") in _INVISIBLE_STYLES
            is_background = child.tag == "path" and is_invisible
            if is_background or child.tag in ("metadata", "style"):
                node.remove(child)


def _hoist_common_style(node: ET.Element) -> None:
    """Move the style that all marks of a series share to their parent, which has it once."""
    # A style on the parent would also reach children of other kinds, such as text.
    has_only_marks = all(child.tag == "use" for child in node)
    if not has_only_marks or "style" in node.attrib:
        return
    styles = {child.get("style") for child in node}
    if len(styles) != 1:
        return
    node.set("style", styles.pop() or "")
    for child in node:
        child.attrib.pop("style", None)


def _tidy_node(node: ET.Element, ids: dict[str, str]) -> None:
    """Shorten one node, give it the page's colours and ids of its own."""
    old_attributes = node.attrib
    node.attrib = {}
    # White space between elements is not seen.
    node.tail = None
    if node.tag != "text":
        node.text = None
    # An id that nothing refers to is dropped.
    old_id = old_attributes.get("id", "")
    if old_id in ids:
        node.set("id", ids[old_id])
    if "href" in old_attributes:
        target = old_attributes["href"].removeprefix("#")
        node.set("href", f"#{ids[target]}")
    # Marks are the bulk of a chart; a tenth of a point moves none that one could see.
    digits = 1 if node.tag == "use" else 2
    for name, value in old_attributes.items():
        turns_nothing = value.startswith("rotate(-0 ")
        # Ids and links are set above, style and filling below.
        if turns_nothing or name in ("id", "href", "style", "fill"):
            continue
        node.set(name, _tidy_value(value, ids, digits))
    if "d" in old_attributes:
        # Letters part the numbers of a path: no spaces are needed beside them.
        path = _PATH_COMMAND.sub(r"\1", node.get("d", ""))
        node.set("d", path.strip())
    style = _tidy_style(old_attributes, ids)
    if style:
        node.set("style", style)


def _tidy_style(attributes: dict[str, str], ids: dict[str, str]) -> str:
    """Return the style of a node with the page's colours, without its font."""
    properties = []
    for declaration in attributes.get("style", "").split("; "):
        name, colon, value = declaration.partition(": ")
        if colon:
            properties.append((name, value))
    # Only inside a style does a browser resolve var(--c-ROLE), not in the attribute "fill".
    if "fill" in attributes:
        properties.append(("fill", attributes["fill"]))
    declarations = []
    for name, value in properties:
        if name == "font-family":
            continue
        if name == "font":  # matplotlib before 3.9 writes size and family together
            name = "font-size"
            value = re.findall(r"[\d.]+px", value)[0]
        tidy_value = _tidy_value(value, ids, digits=2)
        declarations.append(f"{name}:{tidy_value}")
    return _STAND_IN.sub(_page_colour, ";".join(declarations))


def _page_colour(stand_in: re.Match[str]) -> str:
    role = _ROLES[int(stand_in[1], base=16)]
    return f"var(--c-{role})"


def _tidy_value(value: str, ids: dict[str, str], digits: int) -> str:
    """Return a value with short ids, its numbers rounded."""

    def shorten_id(match: re.Match[str]) -> str:
        return f"url(#{ids[match[1]]})"

    def round_number(match: re.Match[str]) -> str:
        rounded = format(float(match[0]), f".{digits}f")
        return rounded.rstrip("0").rstrip(".")

    with_short_ids = _URL.sub(shorten_id, value)
    return _DECIMAL_NUMBER.sub(round_number, with_short_ids)
