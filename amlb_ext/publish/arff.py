"""ARFF that Weka, OpenML's upload check and liac-arff all read as it was meant.

Written here and not by liac-arff, whose writer leaves a category ``?`` bare (it would be read as
missing), does not quote braces, and does not escape names. Whatever is not plain is quoted, and
what could end or bend a quoted text is written as three octal digits, the only escape that all
three readers share. Read (splits of a server) through liac-arff.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.errors import PublishError

_PLAIN = re.compile(r"[A-Za-z0-9_.+()/-]+")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"'\\]")
_NAME_LOST = re.compile(r"[\x00-\x1f\x7f\"\\]")


@dataclass(frozen=True)
class Attribute:
    """A column of an ARFF file.

    Attributes
    ----------
    name : str
        As :func:`attribute_names` gives it.
    values : tuple of str, optional
        Categories of a nominal attribute; None for numbers and texts.
    text : bool
        Whether an attribute without categories holds texts.
    """

    name: str
    values: tuple[str, ...] | None = None
    text: bool = False

    @property
    def declared(self) -> str:
        """The attribute's type as the header states it."""
        if self.values is None:
            return "STRING" if self.text else "NUMERIC"
        return "{" + ",".join(map(quote, self.values)) + "}"


def quote(text: str) -> str:
    """Return a text as ARFF holds it.

    Examples
    --------
    >>> print(quote("plain"), quote("?"), quote("it's 100 %"))
    plain '?' 'it\\047s 100 %'
    """
    if _PLAIN.fullmatch(text):
        return text
    return "'" + _ESCAPED.sub(lambda match: f"\\{ord(match[0]):03o}", text) + "'"


def attribute_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that every reader gives back as they are, distinct, in order.

    Backslashes, double quotes, control characters, and quotes or space at the ends become ``_``.

    Examples
    --------
    >>> attribute_names(["age", "it's", "a\\\\b", "a_b", " x'"])
    ('age', "it's", 'a_b_2', 'a_b', '_x_')
    """
    safe = [_safe_name(name) for name in names]
    taken = {name for name, new in zip(names, safe, strict=True) if name == new}
    out = []
    for name, new in zip(names, safe, strict=True):
        candidate, number = new, 1
        while new != name and candidate in taken:
            number += 1
            candidate = f"{new}_{number}"
        taken.add(candidate)
        out.append(candidate)
    return tuple(out)


def _safe_name(name: str) -> str:
    text = _NAME_LOST.sub("_", name) or "_"
    if text[0] in " '":
        text = "_" + text[1:]
    return text[:-1] + "_" if text[-1] in " '" else text


def arff_text(
    relation: str,
    attributes: Sequence[Attribute],
    columns: Sequence[Sequence[str | None]],
) -> str:
    """Return an ARFF file.

    Parameters
    ----------
    relation : str
    attributes : sequence of Attribute
    columns : sequence of d sequences of n texts
        None is missing; numbers are written as they come.

    Examples
    --------
    >>> print(arff_text("r", [Attribute("x"), Attribute("c d", ("a", "?"))], [["1", None], "?a"]))
    @relation r
    <BLANKLINE>
    @attribute x NUMERIC
    @attribute "c d" {a,'?'}
    <BLANKLINE>
    @data
    1,'?'
    ?,a
    <BLANKLINE>
    """
    lines = [f"@relation {quote(relation)}", ""]
    for attribute in attributes:
        name = attribute.name if _PLAIN.fullmatch(attribute.name) else f'"{attribute.name}"'
        lines.append(f"@attribute {name} {attribute.declared}")
    lines += ["", "@data"]
    written = []
    for attribute, column in zip(attributes, columns, strict=True):
        if attribute.values is None and not attribute.text:
            written.append(["?" if value is None else value for value in column])
        else:
            known = {value: quote(value) for value in set(column) if value is not None}
            written.append(["?" if value is None else known[value] for value in column])
    lines += map(",".join, zip(*written, strict=True))
    return "\n".join(lines) + "\n"


def read_split(text: str) -> dict[tuple[int, int, int], tuple[np.ndarray, np.ndarray]]:
    """Return training and test positions per (repeat, fold, sample) of a server's split file.

    Raises
    ------
    PublishError
        It is no split file.

    Examples
    --------
    >>> head = "@relation s\\n@attribute type {TRAIN,TEST}\\n@attribute rowid numeric\\n"
    >>> head += "@attribute repeat numeric\\n@attribute fold numeric\\n@data\\n"
    >>> read_split(head + "TRAIN,1,0,0\\nTEST,0,0,0\\n")[0, 0, 0][1].tolist()
    [0]
    """
    import arff

    try:
        decoded = arff.loads(text)
        names = [str(name).lower() for name, _ in decoded["attributes"]]
        type_, row, repeat, fold = (names.index(n) for n in ("type", "rowid", "repeat", "fold"))
        sample = names.index("sample") if "sample" in names else None
        parts: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
        for line in decoded["data"]:
            key = (int(line[repeat]), int(line[fold]), 0 if sample is None else int(line[sample]))
            side = {"TRAIN": 0, "TEST": 1}[line[type_]]
            parts.setdefault(key, ([], []))[side].append(int(line[row]))
    except (arff.ArffException, ValueError, KeyError, TypeError, IndexError) as error:
        said = " ".join(str(error).split())[:120]
        raise PublishError(f"the server's split is no split file: {said}", "try again") from None
    return {
        key: (np.sort(np.asarray(train, dtype=np.int64)), np.sort(np.asarray(test, dtype=np.int64)))
        for key, (train, test) in parts.items()
    }
