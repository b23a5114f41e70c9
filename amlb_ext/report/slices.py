r"""Where F fails: a few conditions on features, found on one half of the rows, judged on the other.

Notation
--------
a slice : a conjunction of conditions on features, as a reader could type them
base : share of bad rows among all rows of the judging half;  share : the same inside the slice

Found: every node of a few shallow trees, fitted to the bad flags of one half of the source rows,
and what is simpler by one condition, is a candidate. Numbers are rounded and categories listed
*before* judging, so what is printed is what was judged. Judged, on the other half alone, by
source row:

* p : one-sided, of "bad rows fall inside as they fall elsewhere". All splits of the judged source
  rows into inside and outside are equally likely then, so it is the hypergeometric tail
  (Fisher 1934), or, where a source row occurs several times, a Monte Carlo permutation of whole
  source rows (Phipson & Smyth 2010). Nothing is assumed of the numbers being large.
* interval : Wilson (1927) with Kish's effective number of source rows, :math:`(\sum m)^2 /
  \sum m^2` for m occurrences each, as n. With one occurrence each it is Wilson's; else it errs on
  the wide side, since a mean of flags within [0, 1] varies at most as a single flag does.
* Holm (1979) over all slices judged. Only slices with an adjusted p of at most .05 are returned.

Selected on realised error, bad rows may be label noise: no slice is no proof that none exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom
from sklearn.tree import DecisionTreeClassifier

from amlb_ext.core.rng import draw_int_seed
from amlb_ext.core.task import Column
from amlb_ext.report.conditions import CodedColumn, Condition, code_columns
from amlb_ext.stats.bounded_mean import wilson_limits
from amlb_ext.stats.weighted_mean import holm_adjusted, kish_size

#: Columns of :func:`find_slices`.
COLUMNS = (
    *("slice", "rows", "bad", "share", "low", "high", "base", "lift", "p", "p_holm"),
    "n_features",
)
#: Fewer source rows, or fewer bad ones in a half, are not searched.
MIN_ROWS, MIN_BAD = 40, 3
#: Adjusted p-values above this are no finding.
LEVEL = 0.05
#: Rows used to find slices, and values in them.
MOST_FOUND_ON, MOST_VALUES = 20_000, 4_000_000
#: Coverage of the interval of a slice's share.
_COVERAGE = 0.95
#: Trees, each without the feature at the root of those before it.
_TREES = 3
#: Permutations of source rows: the smallest p-value is 1e-5.
_DRAWS = 99_999
#: A slice is chosen from this score on; each condition costs, so that short ones win.
_FEWEST_STANDARD_ERRORS, _COST_PER_CONDITION = 1.5, 0.5
#: Slices that share more rows than this are told apart only if one is this much worse.
_OVERLAP, _WORSE = 0.6, 1.5
#: A slice of fewer judging source rows is not judged.
_FEWEST_JUDGED = 5

#: Conditions on columns, by position of the column.
_Path = dict[int, Condition]


@dataclass(frozen=True, kw_only=True)
class JudgedSlices:
    """Slices in which F fails significantly more often than elsewhere, and the rows inside.

    Attributes
    ----------
    table : DataFrame
        See :func:`find_slices`.
    inside : tuple of ndarray of shape (n,), bool
        For each slice, the rows of the judging half that meet its conditions.
    """

    table: pd.DataFrame
    inside: tuple[np.ndarray, ...]


def find_slices(
    features: pd.DataFrame,
    columns: Sequence[Column],
    bad: np.ndarray,
    groups: np.ndarray,
    rng: np.random.Generator,
    most: int = 5,
    depth: int = 3,
) -> pd.DataFrame:
    """Return slices of the features in which F fails significantly more often than elsewhere.

    Parameters
    ----------
    features : DataFrame of shape (n, d)
        Real rows in canonical form.
    columns : sequence of Column
    bad : ndarray of shape (n,), bool
    groups : ndarray of shape (n,)
        The source row of each row; rows of one source row have the same features.
    rng : Generator
    most : int
        Slices judged at most.
    depth : int
        Conditions at most; those on one feature are merged.

    Returns
    -------
    DataFrame
        One row per slice, smallest p first, with :data:`COLUMNS`; all numbers come from the
        judging half. Empty when nothing was found, or there is too little to find anything in.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = pd.DataFrame({"age": rng.integers(18, 80, 800).astype(float)})
    >>> bad = (x["age"] > 60).to_numpy() & (rng.random(800) < 0.5)
    >>> slices = find_slices(x, [Column("age", "integer")], bad, np.arange(800), rng)
    >>> slices["slice"].tolist()
    ['age > 60']
    """
    found = search_and_judge(
        features, columns, bad, groups, rng, most=most, depth=depth
    )
    return found.table


def search_and_judge(
    features: pd.DataFrame,
    columns: Sequence[Column],
    bad: np.ndarray,
    groups: np.ndarray,
    rng: np.random.Generator,
    *,
    most: int = 5,
    depth: int = 3,
) -> JudgedSlices:
    """Return the slices of :func:`find_slices` with the rows inside; same parameters."""
    no_rows = pd.DataFrame({name: [] for name in COLUMNS}).astype({"slice": object})
    nothing_found = JudgedSlices(table=no_rows, inside=())
    bad = np.asarray(bad, dtype=bool)
    source = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if len(bad) == 0 or source.max() + 1 < MIN_ROWS or features.shape[1] == 0:
        return nothing_found
    has_bad_row = np.bincount(source, bad) > 0
    is_finding = _draw_finding_half(has_bad_row, rng)[source]
    if not all(_is_searchable(bad, source, half) for half in (is_finding, ~is_finding)):
        return nothing_found

    data = features[[column.name for column in columns]]
    rows_at_most = min(MOST_FOUND_ON, max(1000, MOST_VALUES // len(columns)))
    finding_rows = np.flatnonzero(is_finding)
    if len(finding_rows) > rows_at_most:
        finding_rows = np.sort(rng.choice(finding_rows, rows_at_most, replace=False))
    coded_columns = code_columns(data, columns, bad, finding_rows)
    slices = _search_slices(
        coded_columns, bad, finding_rows, rng, most=most, depth=depth
    )

    judged = _judge_slices(slices, bad, source, ~is_finding, rng)
    if not judged:
        return nothing_found
    table = pd.DataFrame(judged)
    table["p_holm"] = holm_adjusted(table["p"].to_numpy())
    table = table[table["p_holm"] <= LEVEL].sort_values(
        ["p", "lift"], ascending=[True, False]
    )
    if not len(table):
        return nothing_found
    inside = tuple(table["inside"])
    return JudgedSlices(
        table=table[list(COLUMNS)].reset_index(drop=True), inside=inside
    )


def _draw_finding_half(has_bad_row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return which source rows find; those with bad rows and those without are halved each."""
    is_finding = np.zeros(len(has_bad_row), dtype=bool)
    for stratum in (has_bad_row, ~has_bad_row):
        members = rng.permutation(np.flatnonzero(stratum))
        # Of an odd number either half may get the larger part.
        half = (len(members) + int(rng.integers(2))) // 2
        is_finding[members[:half]] = True
    return is_finding


def _is_searchable(bad: np.ndarray, source: np.ndarray, half: np.ndarray) -> bool:
    """Whether a half has enough bad source rows, and good rows beside them."""
    n_bad_sources = len(np.unique(source[half & bad]))
    return n_bad_sources >= MIN_BAD and not bad[half].all()


# Finding: candidates are the nodes of a few trees; none of this sees the judging half.


@dataclass(kw_only=True)
class _Candidate:
    """A conjunction of conditions, and how it does on the finding half.

    Attributes
    ----------
    path : dict of int to Condition
        Conditions with rounded bounds, by position of the column.
    inside : ndarray of shape (n,), bool
        Rows of both halves that meet all conditions.
    score : float
        Standard errors by which the share of bad rows exceeds that of all, less what the
        conditions cost.
    """

    path: _Path
    inside: np.ndarray
    score: float


@dataclass(kw_only=True)
class _Slice:
    """A candidate that was chosen, as a reader is told of it."""

    inside: np.ndarray
    text: str
    n_features: int


def _search_slices(
    coded_columns: Sequence[CodedColumn],
    bad: np.ndarray,
    finding_rows: np.ndarray,
    rng: np.random.Generator,
    *,
    most: int,
    depth: int,
) -> list[_Slice]:
    """Return the slices to be judged: the most telling candidates, with little overlap."""
    if not coded_columns or not 0 < bad[finding_rows].sum() < len(finding_rows):
        return []
    smallest_leaf = max(5, int(np.ceil(0.02 * len(finding_rows))))
    paths = _tree_paths(coded_columns, bad, finding_rows, rng, depth, smallest_leaf)

    candidates: list[_Candidate] = []
    for path in paths:
        for variant in _simpler_variants(path):
            candidate = _score_candidate(variant, coded_columns, bad, finding_rows)
            if candidate.inside[finding_rows].sum() >= smallest_leaf:
                candidates.append(candidate)
    candidates.sort(key=lambda candidate: -candidate.score)

    chosen: list[_Candidate] = []
    for candidate in candidates:
        if len(chosen) == most or candidate.score < _FEWEST_STANDARD_ERRORS:
            break
        if all(_says_more(candidate, other, bad, finding_rows) for other in chosen):
            chosen.append(candidate)
    described = [_describe_slice(candidate, coded_columns) for candidate in chosen]
    # A slice whose conditions hold for every row has no text.
    return [slice_ for slice_ in described if slice_.text]


def _tree_paths(
    coded_columns: Sequence[CodedColumn],
    bad: np.ndarray,
    finding_rows: np.ndarray,
    rng: np.random.Generator,
    depth: int,
    smallest_leaf: int,
) -> list[_Path]:
    """Return the paths to all nodes of a few trees, each without the roots of those before."""
    # scikit-learn's trees take float32: what lies beyond it would become infinite.
    largest = float(np.finfo(np.float32).max) / 2
    matrix = np.column_stack([coded.x[finding_rows] for coded in coded_columns])
    matrix = np.clip(matrix, -largest, largest).astype(np.float32)
    positions = np.arange(len(coded_columns))
    paths: list[_Path] = []
    for _ in range(_TREES):
        if not len(positions):
            break
        classifier = DecisionTreeClassifier(
            max_depth=depth,
            min_samples_leaf=smallest_leaf,
            class_weight="balanced",
            random_state=draw_int_seed(rng),
        )
        tree = classifier.fit(matrix[:, positions], bad[finding_rows]).tree_
        paths += _node_paths(tree, positions)
        if tree.node_count == 1:  # no split: another tree would find none either
            break
        root = positions[tree.feature[0]]
        positions = positions[positions != root]
    return paths


def _node_paths(tree: Any, positions: np.ndarray) -> list[_Path]:
    """Return the conditions that lead to each node below the root, merged by column."""
    paths: list[_Path] = []
    waiting: list[tuple[int, _Path]] = [(0, {})]
    while waiting:
        node, path = waiting.pop()
        if path:
            paths.append(path)
        if tree.children_left[node] < 0:  # a leaf
            continue
        position = int(positions[tree.feature[node]])
        threshold = float(tree.threshold[node])
        missing_left = bool(tree.missing_go_to_left[node])
        parent = path.get(position, Condition())
        below = Condition(
            low=parent.low,
            high=min(parent.high, threshold),
            missing=parent.missing and missing_left,
        )
        above = Condition(
            low=max(parent.low, threshold),
            high=parent.high,
            missing=parent.missing and not missing_left,
        )
        waiting.append((int(tree.children_left[node]), {**path, position: below}))
        waiting.append((int(tree.children_right[node]), {**path, position: above}))
    return paths


def _simpler_variants(path: _Path) -> Iterator[_Path]:
    """Yield a path and what is simpler: a condition less, or not both a range and missing."""
    yield path
    for position, condition in path.items():
        others = {other: path[other] for other in path if other != position}
        if others:
            yield others
        if condition.n_parts > 1:
            only_missing = Condition(low=np.inf)
            only_range = Condition(condition.low, condition.high, missing=False)
            yield {**others, position: only_missing}
            yield {**others, position: only_range}


def _score_candidate(
    path: _Path,
    coded_columns: Sequence[CodedColumn],
    bad: np.ndarray,
    finding_rows: np.ndarray,
) -> _Candidate:
    """Round the bounds of a path, and score the rows that meet all its conditions."""
    # Rounded before anything is counted: what is printed is what is judged.
    rounded = {
        position: coded_columns[position].rounded(condition)
        for position, condition in path.items()
    }
    inside = np.ones(len(bad), dtype=bool)
    n_conditions = 0
    for position, condition in rounded.items():
        coded = coded_columns[position]
        inside &= coded.matches(condition)
        n_conditions += condition.n_parts if coded.n_missing else 1
    excess = _standard_errors_above(bad[finding_rows], inside[finding_rows])
    score = excess - _COST_PER_CONDITION * (n_conditions - 1)
    return _Candidate(path=rounded, inside=inside, score=score)


def _standard_errors_above(bad: np.ndarray, inside: np.ndarray) -> float:
    """Return by how many standard errors the share inside exceeds the share of all."""
    n_rows, n_inside = len(bad), int(inside.sum())
    if not 0 < n_inside < n_rows:
        return -np.inf
    base = bad.mean()
    variance = base * (1 - base) * (1 / n_inside - 1 / n_rows)
    return float((bad[inside].mean() - base) / np.sqrt(variance))


def _says_more(
    candidate: _Candidate,
    earlier: _Candidate,
    bad: np.ndarray,
    finding_rows: np.ndarray,
) -> bool:
    """Whether a candidate has other rows than one chosen before, or far worse ones."""
    mine, others = candidate.inside[finding_rows], earlier.inside[finding_rows]
    n_shared = (mine & others).sum()
    if n_shared <= _OVERLAP * min(mine.sum(), others.sum()):
        return True
    is_bad = bad[finding_rows]
    return bool(is_bad[mine].mean() >= _WORSE * is_bad[others].mean())


def _describe_slice(
    candidate: _Candidate, coded_columns: Sequence[CodedColumn]
) -> _Slice:
    is_alone = len(candidate.path) == 1
    texts = []
    for position, condition in candidate.path.items():
        text = coded_columns[position].describe(condition, is_alone)
        if text:
            texts.append(text)
    return _Slice(
        inside=candidate.inside, text=" and ".join(texts), n_features=len(texts)
    )


# Judging: on the other half alone, and by source row, for copies of a row are one observation.


def _judge_slices(
    slices: Sequence[_Slice],
    bad: np.ndarray,
    source: np.ndarray,
    is_judging: np.ndarray,
    rng: np.random.Generator,
) -> list[dict[str, object]]:
    """Return the figures of each slice on the rows that did not find it."""
    judging_bad = bad[is_judging]
    _, first_row, source_code = np.unique(
        source[is_judging], return_index=True, return_inverse=True
    )
    n_rows = np.bincount(source_code).astype(float)
    n_bad = np.bincount(source_code, judging_bad)
    base = float(judging_bad.mean())
    judged: list[dict[str, object]] = []
    for slice_ in slices:
        # Rows of one source row have the same features: the first tells for all.
        inside = slice_.inside[is_judging][first_row]
        if inside.sum() < _FEWEST_JUDGED or inside.all():
            continue
        rows_inside, bad_inside = n_rows[inside].sum(), n_bad[inside].sum()
        share = bad_inside / rows_inside
        low, high = _share_interval(share, kish_size(n_rows[inside]))
        judged.append(
            {
                "slice": slice_.text,
                "rows": int(rows_inside),
                "bad": int(bad_inside),
                "share": share,
                "low": low,
                "high": high,
                "base": base,
                "lift": share / base,
                "p": _p_value(n_rows, n_bad, inside, rng),
                "n_features": slice_.n_features,
                "inside": slice_.inside & is_judging,
            }
        )
    return judged


def _share_interval(share: float, effective_size: float) -> tuple[float, float]:
    """Return Wilson's interval of a share; the effective size need not be a whole number."""
    errors = np.array([share * effective_size])
    low, high = wilson_limits(errors, np.array([effective_size]), _COVERAGE)
    return max(0.0, float(low[0])), min(1.0, float(high[0]))


def _p_value(
    n_rows: np.ndarray, n_bad: np.ndarray, inside: np.ndarray, rng: np.random.Generator
) -> float:
    """Return the one-sided p of a slice, see the module.

    Parameters
    ----------
    n_rows, n_bad : ndarray of shape (m,)
        Rows and bad rows of each judged source row.
    inside : ndarray of shape (m,), bool
    rng : Generator
    """
    n_inside = int(inside.sum())
    if n_rows.max() == 1:
        return float(
            hypergeom.sf(
                n_bad[inside].sum() - 1, len(n_bad), int(n_bad.sum()), n_inside
            )
        )
    excess = n_bad - n_bad.sum() / n_rows.sum() * n_rows
    values, counts = np.unique(excess, return_counts=True)
    # How many source rows of each kind fall inside is all that matters: no row is shuffled.
    kinds_inside = rng.multivariate_hypergeometric(
        counts, n_inside, size=_DRAWS, method="marginals"
    )
    draws = kinds_inside @ values
    # Sums of floats that are equal on paper differ by rounding.
    n_as_large = (draws >= excess[inside].sum() - 1e-9).sum()
    return float((1 + n_as_large) / (1 + _DRAWS))
