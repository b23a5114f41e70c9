"""The rules that call a row bad, by name; ``hardness`` computes them.

They stand apart so that ``hardsynth list`` names them without numpy.
"""

from __future__ import annotations

#: Rules, the kinds they serve, and what they mean, for ``hardsynth list``.
RULES: dict[str, tuple[str, str]] = {
    "absolute": ("regression", "|F(x) - y| >= alpha on the scaled target"),
    "squared": ("regression", "(F(x) - y)^2 >= alpha, the paper's printed formula"),
    "band": (
        "classification",
        "largest class probability <= alpha: the least confident rows",
    ),
    "wrong": (
        "classification",
        "F decides wrongly; with alpha, probability of the true class <= alpha, as printed",
    ),
    "quantile": ("any", "the worst share of rows by squared error or Brier loss"),
    "reducible": ("any", "a cross-fitted oracle departs from F: by features alone"),
}

#: Names that stand for one rule of each kind: (classification, regression).
BY_KIND: dict[str, tuple[str, str]] = {
    "auto": ("wrong", "quantile"),
    "paper": ("band", "absolute"),
}


def failing_text(rule: str) -> str:
    """Return what F does on the rows that a rule calls bad, in words.

    Examples
    --------
    >>> failing_text("wrong"), failing_text("band")
    ('fails', 'is unsure')
    """
    return "is unsure" if rule == "band" else "fails"
