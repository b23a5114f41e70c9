"""Write ARFF that Weka, OpenML's upload check and liac-arff all read alike.

It is written here and not by liac-arff, whose writer leaves a category ``?`` bare (it would be read
as missing), does not quote braces, and does not escape names. Whatever is not plain is quoted, and
what could end or bend a quoted text is written as three octal digits, the only escape that all
three readers share. A server's splits are read through liac-arff.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from amlb_ext.core.errors import PublishError

#: Texts that every reader takes without quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_.+()/-]+")
#: Characters that could end or bend a quoted text.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"'\\]")
#: Characters that no escape carries through all three readers in a name.
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
        categories = [quote(value) for value in self.values]
        return "{" + ",".join(categories) + "}"


def quote(text: str) -> str:
    """Return a text as ARFF holds it.

    Examples
    --------
    >>> print(quote("plain"), quote("?"), quote("it's 100 %"))
    plain '?' 'it\\047s 100 %'
    """
    if _PLAIN.fullmatch(text):
        return text
    escaped = _ESCAPED.sub(lambda match: f"\\{ord(match[0]):03o}", text)
    return f"'{escaped}'"


def attribute_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that every reader gives back as they are, distinct, in order.

    Backslashes, double quotes, control characters, and quotes or space at the ends become ``_``.

    Examples
    --------
    >>> attribute_names(["age", "it's", "a\\\\b", "a_b", " x'"])
    ('age', "it's", 'a_b_2', 'a_b', '_x_')
    """
    # names that may stay as they are keep theirs, wherever they stand
    taken = {name for name in names if _safe_name(name) == name}
    unique = []
    for name in names:
        safe = _safe_name(name)
        candidate = safe
        number = 1
        while safe != name and candidate in taken:
            number += 1
            candidate = f"{safe}_{number}"
        taken.add(candidate)
        unique.append(candidate)
    return tuple(unique)


def _safe_name(name: str) -> str:
    text = _NAME_LOST.sub("_", name) or "_"
    # readers strip spaces, and take quotes at the ends for those of the format
    if text[0] in " '":
        text = "_" + text[1:]
    if text[-1] in " '":
        text = text[:-1] + "_"
    return text


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
        name = attribute.name
        # in double quotes, and not by quote(): names may hold a single one, and take no escapes
        if not _PLAIN.fullmatch(name):
            name = f'"{name}"'
        lines.append(f"@attribute {name} {attribute.declared}")
    lines += ["", "@data"]
    cells = []
    for attribute, column in zip(attributes, columns, strict=True):
        is_number = attribute.values is None and not attribute.text
        # columns repeat their values: each is quoted once
        written: dict[str | None, str] = {None: "?"}
        for value in set(column):
            if value is not None:
                written[value] = value if is_number else quote(value)
        cells.append([written[value] for value in column])
    for row in zip(*cells, strict=True):
        lines.append(",".join(row))
    return "\n".join(lines) + "\n"


def read_split(text: str) -> pd.DataFrame:
    """Return the rows of a server's split file.

    Returns
    -------
    DataFrame
        ``type`` (``TRAIN`` or ``TEST``), and numbers: ``rowid``, ``repeat``, ``fold``, ``sample``.

    Raises
    ------
    PublishError
        The text is not a split file.

    Examples
    --------
    >>> head = "@relation s\\n@attribute type {TRAIN,TEST}\\n@attribute rowid numeric\\n"
    >>> head += "@attribute repeat numeric\\n@attribute fold numeric\\n@data\\n"
    >>> rows = read_split(head + "TRAIN,1,0,0\\nTEST,0,0,0\\n")
    >>> rows.loc[rows["type"] == "TEST", "rowid"].tolist()
    [0]
    """
    import arff

    try:
        decoded = arff.loads(text)
        names = [str(name).lower() for name, _ in decoded["attributes"]]
        rows = pd.DataFrame(decoded["data"], columns=names)
        # only learning curves have several samples, and not every other file has the column
        if "sample" not in names:
            rows["sample"] = 0
        numbers = ["rowid", "repeat", "fold", "sample"]
        rows[numbers] = rows[numbers].astype("int64")
        if not rows["type"].isin(["TRAIN", "TEST"]).all():
            raise ValueError("a row is neither for training nor for testing")
    except (arff.ArffException, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise PublishError(
            f"what the server sent is not a split file: {reason}",
            "run the same command again",
        ) from None
    return rows
