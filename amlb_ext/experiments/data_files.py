"""Where the file of a paper's data set lies: in the folder given, or in one of the set's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amlb_ext.core.errors import SourceError


def find_data_file(folder: Path | None, name: str, file_names: Sequence[str]) -> Path:
    """Return the first file of a data set that exists.

    Parameters
    ----------
    folder : Path or None
        None: no folder was given.
    name : str
        Of the data set, and of the subfolder that is looked into first.
    file_names : sequence of str
        Names that the file may have.

    Raises
    ------
    SourceError
        No such file.

    Examples
    --------
    >>> find_data_file(None, "bank", ["bank-full.csv"])
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: bank needs a file, bank-full.csv (give its folder as --data)
    """
    alternatives = " or ".join(file_names)
    if folder is None:
        raise SourceError(
            f"{name} needs a file, {alternatives}", "give its folder as --data"
        )
    # the set's own folder first: one folder may hold the files of many data sets
    for place in (folder / name, folder):
        for file_name in file_names:
            path = place / file_name
            if path.is_file():
                return path
    raise SourceError(
        f"{folder} holds no {alternatives}, nor {name}/{file_names[0]}",
        "see docs/evidence/reproduce.md for where to get it",
    )
