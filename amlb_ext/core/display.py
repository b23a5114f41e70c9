"""Numbers, tables and foreign text as people read them, on the page and in the terminal.

The page has typographic signs: ``−`` before a negative number, ``–`` for a missing one. Text tables
and Markdown have the plain ``-``, and decimals that line up: :func:`format_decimals`.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Number, Real
from typing import Any

# Every command prints, so `hardsynth --help` imports this module: it must not wait for numpy and
# pandas. The abstract types of `numbers` recognise their scalars, which register there.

#: Types of `pandas.NA` and `pandas.NaT`.
_MISSING_TYPES = ("NAType", "NaTType")

#: Characters that move a terminal's cursor, or turn or hide what stands around them; among them
#: what XML forbids: halves of surrogate pairs and the last two code points.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff]"
)


def is_known(value: Any) -> bool:
    """Return whether there is a value: not None, not NaN or infinite, not empty text."""
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return False
    # Not for integers: a huge one has no float.
    if isinstance(value, Real) and not isinstance(value, Integral):
        return math.isfinite(value)
    is_empty_text = isinstance(value, str) and value == ""
    return not is_empty_text


#: From here on a number is written with a power of ten: nobody counts its digits.
_TOO_LONG = 1e15


def format_number(value: Any, sign: bool = False, digits: int = 3) -> str:
    """Return a number with its significant digits, or a dash for a missing one.

    Examples
    --------
    >>> format_number(-0.012345), format_number(12345), format_number(float("nan"))
    ('−0.0123', '12 345', '–')
    >>> format_number(0.5, sign=True)
    '+0.5'
    """
    if not is_known(value):
        return "–"
    if abs(value) >= _TOO_LONG:
        text = f"{float(value):.{digits}g}"
    elif isinstance(value, Integral) or abs(value) >= 1000:
        text = f"{value:,.0f}".replace(",", " ")
    else:
        text = f"{value:.{digits}g}"
        # 1e-05 is 1e-5 in print
        text = text.replace("e-0", "e-")
    plus = "+" if sign and value > 0 else ""
    return plus + _with_minus_sign(text)


def _with_minus_sign(text: str) -> str:
    """Return text with the typographic minus, which is as wide as a plus."""
    return text.replace("-", "−")


def format_percent(value: Any, unit: str = " %", *, sign: bool = False) -> str:
    """Return a share in percent; with ``sign`` a gain of 54 % is not read as 54 % of all.

    Examples
    --------
    >>> format_percent(-0.1834), format_percent(0.004), format_percent(None)
    ('−18 %', '0.4 %', '–')
    >>> format_percent(0.54, sign=True), format_percent(0.0, sign=True)
    ('+54 %', '0 %')
    """
    if not is_known(value):
        return "–"
    size = abs(value)
    # What rounds to zero is written as "0 %", without decimals and without a sign.
    if size < 0.0005:
        return f"0{unit}"
    # One decimal below 10 %; 9.95 % is the first to round to "10.0".
    form = ".0f" if size >= 0.0995 else ".1f"
    if size >= _TOO_LONG:
        form = ".3g"
    plus = "+" if sign else ""
    return _with_minus_sign(f"{100 * value:{plus}{form}}{unit}")


def format_level(level: float) -> str:
    """Return a confidence level in percent, with all its digits.

    Examples
    --------
    >>> format_level(0.95), format_level(0.975), format_level(0.9999)
    ('95%', '97.5%', '99.99%')
    """
    return f"{100 * level:.10g}%"


def format_count(count: int, noun: str) -> str:
    """Return a number of things, the noun in the plural but for one of them.

    Examples
    --------
    >>> format_count(1, "job"), format_count(1200, "comparison")
    ('1 job', '1 200 comparisons')
    """
    plural = "" if count == 1 else "s"
    return f"{format_number(count)} {noun}{plural}"


def format_interval(row: Mapping[str, Any]) -> str:
    """Return a difference and its interval, with the digits that the interval's width allows.

    Examples
    --------
    >>> format_interval({"difference": -0.04051, "low": -0.0463, "high": -0.0346})
    '−0.0405 (−0.0463 to −0.0346)'
    >>> format_interval({"difference": 0.2, "low": float("nan"), "high": float("nan")})
    '+0.2 (no interval)'
    >>> format_interval({"difference": 0.0, "low": 0.0, "high": 0.0})
    '0'
    """
    value = row["difference"]
    low = row["low"]
    high = row["high"]
    if not is_known(value):
        return "no estimate"
    if not (is_known(low) and is_known(high)):
        return f"{format_number(value, sign=True)} (no interval)"
    # F run once more predicts the same: nine zeros, three times, would say no more
    if value == low == high == 0:
        return "0"
    # Two digits of the half-width count: 0.0058 allows four decimals.
    half_width = max((high - low) / 2, 1e-9)
    magnitude = math.floor(math.log10(half_width))
    decimals = min(max(1 - magnitude, 0), 9)
    text = f"{value:+.{decimals}f} ({low:.{decimals}f} to {high:.{decimals}f})"
    return _with_minus_sign(text)


def format_p_value(value: Any) -> str:
    """Return a p-value with two digits; one below 0.001 is only called so.

    Examples
    --------
    >>> format_p_value(0.0312), format_p_value(1e-9), format_p_value(float("nan"))
    ('0.031', '< 0.001', '–')
    """
    if not is_known(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def format_decimals(
    value: Any, decimals: int = 3, *, sign: bool = False, missing: str = "-"
) -> str:
    """Return a number with fixed decimals, so that the numbers of a column line up.

    Examples
    --------
    >>> format_decimals(0.25), format_decimals(-2, 1), format_decimals(0.5, sign=True)
    ('0.250', '-2.0', '+0.500')
    >>> format_decimals(None), format_decimals(float("nan"), missing="")
    ('-', '')
    """
    # an infinite loss is a result, and shown as "inf"
    is_infinite = isinstance(value, Real) and math.isinf(value)
    if not is_known(value) and not is_infinite:
        return missing
    plus = "+" if sign else ""
    form = "g" if abs(value) >= _TOO_LONG else f".{decimals}f"
    return f"{value:{plus}{form}}"


def format_cell(value: Any) -> str:
    """Return any value of a table as plain text.

    Examples
    --------
    >>> format_cell(True), format_cell(("a", 0.25)), format_cell(None), format_cell("x")
    ('yes', 'a, 0.25', '–', 'x')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {format_cell(inner)}" for key, inner in value.items())
    is_array = getattr(value, "ndim", 0) > 0
    if is_array or isinstance(value, (list, tuple)):
        return ", ".join(format_cell(inner) for inner in value)
    if not is_known(value):
        return "–"
    is_numpy_bool = str(getattr(value, "dtype", "")) == "bool"
    if is_numpy_bool or isinstance(value, bool):
        return "yes" if value else "no"
    return format_number(value) if isinstance(value, Number) else str(value)


def text_table(
    headers: Sequence[str], rows: Sequence[Sequence[Any]], *, indent: int = 0
) -> str:
    """Return an aligned text table; columns of numbers stand to the right.

    Examples
    --------
    >>> print(text_table(["task", "rows", "loss"], [["toy", 200, 0.5], ["iris", 30, None]]))
    task  rows   loss
    ----  ----  -----
    toy    200  0.500
    iris    30      -
    """
    # NOTE[OWN] `tabulate` decides by the text whether a column holds numbers: labels such as "007"
    # or "1e3" move to the right or change their digits. Here a value's type decides.
    columns = []
    for position, header in enumerate(headers):
        values = [row[position] for row in rows]
        columns.append(_align_column(header, values))
    margin = " " * indent
    lines = []
    for cells in zip(*columns, strict=True):
        line = margin + "  ".join(cells)
        lines.append(line.rstrip())
    return "\n".join(lines)


def _align_column(header: str, values: Sequence[Any]) -> list[str]:
    """Return header, rule and values of one column, all of one width."""
    texts = [header, *(_table_cell(value) for value in values)]
    width = max(len(text) for text in texts)
    texts.insert(1, "-" * width)
    has_numbers = bool(values) and all(_is_number(value) for value in values)
    if has_numbers:
        return [text.rjust(width) for text in texts]
    return [text.ljust(width) for text in texts]


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table.

    Examples
    --------
    >>> print(markdown_table(["model", "loss"], [["tree", 0.25], ["forest", "not run"]]))
    | model | loss |
    | --- | --- |
    | tree | 0.250 |
    | forest | not run |
    """
    lines = [_markdown_row(headers), _markdown_row(["---"] * len(headers))]
    for row in rows:
        cells = [_table_cell(value) for value in row]
        lines.append(_markdown_row(cells))
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _is_number(value: Any) -> bool:
    """Whether a value may stand in a column of numbers; a missing one may, too."""
    return value is None or isinstance(value, Real)


def _table_cell(value: Any) -> str:
    """Return a value as a table of text shows it."""
    if isinstance(value, Integral):
        return str(value)
    return format_decimals(value) if _is_number(value) else str(value)


def escape_controls(text: str) -> str:
    """Return foreign text with its control characters written out.

    Names, labels and messages must not act on the terminal that shows them. Tabs and line feeds
    stay.

    Examples
    --------
    >>> print(escape_controls("red: \\x1b[31m"))
    red: \\x1b[31m
    """
    return _CONTROL_CHARACTERS.sub(
        lambda match: match[0].encode("unicode_escape").decode(), text
    )


def escape_latex(text: str) -> str:
    """Return foreign text as LaTeX shows it.

    Examples
    --------
    >>> escape_latex("a_1 & 5 %")
    'a\\\\_1 \\\\& 5 \\\\%'
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
    special |= {"^": r"\textasciicircum{}", "−": "$-$"}
    special |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(special.get(sign, sign) for sign in text)


def shorten_text(text: object, width: int = 32) -> str:
    """Return foreign text on one line, without control characters, cut with an ellipsis.

    Nothing is escaped: the caller does that for HTML or another language.

    Examples
    --------
    >>> shorten_text("a name\\n that is rather long", 12)
    'a name that…'
    """
    # split() takes line breaks and tabs for spaces, too
    words = str(text).split()
    line = _CONTROL_CHARACTERS.sub("", " ".join(words))
    if len(line) <= width:
        return line
    return line[: width - 1].rstrip() + "…"


def html_view(lines: Sequence[str], table: Any, picture: str = "") -> str:
    """Return sentences, a data frame and a picture as HTML, for what a notebook shows.

    Parameters
    ----------
    lines : sequence of str
    table : DataFrame
    picture : str
        An ``<svg>`` element that was made here; it is not escaped.

    Examples
    --------
    >>> import pandas as pd
    >>> html_view(["a < b"], pd.DataFrame({"x": [1]})).splitlines()[0]
    '<p>a &lt; b</p>'
    """
    paragraphs = [f"<p>{html.escape(line)}</p>" for line in lines]
    shown = table.to_html(index=False, na_rep="", border=0, float_format=format_number)
    return "\n".join([*paragraphs, shown, picture])


# Hide passwords, keys and tokens before a text or an address is shown.


#: Takes the place of a secret.
MASK = "***"

#: ``api_key=...`` in a query, ``api_key%3D...`` in an escaped query, ``"apikey": ...`` in JSON.
_API_KEY = re.compile(
    r"""(api_?key(?:=|%3d|['"]?\s*:\s*['"]?))[^&\s'")]+""",
    re.IGNORECASE,
)
#: ``user:password@`` or ``token@`` before the host.
_USER_AND_PASSWORD = re.compile(r"(://)[^/\s]*@")


def redact_text(text: str, *secrets: str) -> str:
    """Hide the passwords and API keys in a text, for instance in the answer of a server.

    Parameters
    ----------
    text : str
    *secrets : str
        Texts to hide wherever they occur; empty ones are ignored.

    Examples
    --------
    >>> redact_text("GET /task/1?api_key=abc123&x=1 failed for secret", "secret")
    'GET /task/1?api_key=***&x=1 failed for ***'
    >>> redact_text("fatal: unable to access 'https://me:pass@host.org/x'")
    "fatal: unable to access 'https://***@host.org/x'"
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, MASK)
    text = _API_KEY.sub(rf"\1{MASK}", text)
    return _USER_AND_PASSWORD.sub(rf"\1{MASK}@", text)


def redact_url(url: str) -> str:
    """Hide user, password, query and fragment of an address, also of a malformed one.

    Everything up to the last ``@`` is hidden: a password may hold a slash or another ``@``.

    Examples
    --------
    >>> redact_url("https://me:secret@example.org:8443/a.csv?token=secret")
    'https://***@example.org:8443/a.csv?***'
    """
    without_query = re.sub(r"[?#].*", f"?{MASK}", url, flags=re.DOTALL)
    return re.sub(r"//.*@", f"//{MASK}@", without_query, flags=re.DOTALL)
