"""How much of F's time a fold may take: rows asked, calls made, and rows that are still due."""

from __future__ import annotations

from dataclasses import dataclass

from amlb_ext.core.errors import ModelError
from amlb_ext.suite.notes import Note


@dataclass(kw_only=True)
class AskLedger:
    """The rows that F and its re-fits are asked about in one fold.

    Attributes
    ----------
    limit : int
        Most rows.
    rows, calls : int
        Asked so far.
    reserved : int
        Rows that must still be asked about: re-fits judge each row that is kept.
    proposed, confirmed : int
        Made rows that the surrogate called bad and that F was then asked about, and those of them
        that F called bad as well.

    Examples
    --------
    >>> ledger = AskLedger(limit=1000)
    >>> ledger.count(rows=300)
    >>> ledger.reserved = 100
    >>> ledger.afford(share=0.5), ledger.afford(share=0.5, cost=3)
    (300, 100)
    """

    limit: int
    rows: int = 0
    calls: int = 0
    reserved: int = 0
    proposed: int = 0
    confirmed: int = 0

    def count(self, rows: int, calls: int = 1) -> None:
        """Note that F was asked."""
        self.rows += rows
        self.calls += calls

    def check(self, rows: int) -> None:
        """Raise where so many more rows are not to be had.

        Raises
        ------
        ModelError
        """
        needed = self.rows + rows
        if needed > self.limit:
            raise ModelError(
                f"this fold needs F's answers for {needed:,} rows at least, and it may be asked "
                f"about {self.limit:,}",
                f"--ask-at-most {suggested_limit(needed)}, or make fewer rows, e.g. with "
                "--no-train-hard",
            )

    def afford(self, share: float, cost: int = 1) -> int:
        """Return how many rows a share of what is left pays for, at so many answers a row."""
        left = max(0, self.limit - self.rows - self.reserved)
        return int(share * left) // cost

    def to_json(self) -> dict[str, int | float]:
        """Return the fields for the fold's summary."""
        return {
            "limit": self.limit,
            "rows": self.rows,
            "calls": self.calls,
            "proposed": self.proposed,
            "confirmed": self.confirmed,
        }

    def note(self) -> Note:
        """Return what a reader of the fold must know."""
        return Note(kind="asked", counts=self.to_json())


def suggested_limit(needed: int) -> int:
    """Return a limit with room for a search, in two figures.

    Examples
    --------
    >>> suggested_limit(4321), suggested_limit(52_000)
    (8700, 110000)
    """
    doubled = 2 * needed
    unit = 10 ** max(0, len(str(doubled)) - 2)
    return -(-doubled // unit) * unit
