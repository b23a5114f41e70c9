"""What `compare` returns: the answer, with a picture and a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from amlb_ext.comparison.answer import ComparisonAnswer
from amlb_ext.core.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelComparison(ComparisonAnswer):
    """Which model is better than F; see :class:`~amlb_ext.comparison.answer.ComparisonAnswer`.

    Attributes
    ----------
    rows : DataFrame
        One row for each that was compared, by its index in X: ``is_bad``, ``weight`` (the chance
        to be bad by features alone, missing where they do not foresee it), and the losses of
        ``F`` and of each model by name.
    """

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the change of F's loss with its interval, for each model and question.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on a new figure when omitted.

        Returns
        -------
        Axes
        """
        from amlb_ext.comparison.plot import draw_comparison

        return draw_comparison(self, ax)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the answer as one HTML page that loads nothing, and write it where asked.

        Parameters
        ----------
        path : path, optional
            The file to write, e.g. ``report.html``.
        """
        from amlb_ext.comparison.page import render_comparison

        page = render_comparison(self)
        if path is not None:
            write_text(Path(path), page)
        return page

    def _repr_html_(self) -> str:
        from amlb_ext.comparison.page import render_summary

        return render_summary(self)
