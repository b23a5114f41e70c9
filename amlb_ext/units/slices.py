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
  source rows (Phipson & Smyth 2010). Nothing is assumed of the numbers being large. Of groups whose
  rows have features of their own, such as the windows of a series, a slice may hold some rows and
  not others: then it is a t test of the covariance of bad and inside, clustered by group.
* interval : Wilson (1927) with Kish's effective number of source rows, :math:`(\sum m)^2 /
  \sum m^2` for m occurrences each, as n. With one occurrence each it is Wilson's; else it errs on
  the wide side, since a mean of flags within [0, 1] varies at most as a single flag does.
* Holm (1979) over all slices judged. Only slices with an adjusted p of at most .05 are returned.

Selected on realised error, bad rows may be label noise: no slice is no proof that none exists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom
from scipy.stats import t as student
from sklearn.tree import DecisionTreeClassifier

from amlb_ext.core.rng import draw_int_seed
from amlb_ext.core.task import Column
from amlb_ext.core.unit import F
from amlb_ext.stats.bounded_loss import NO_CAP, ErrorCap
from amlb_ext.stats.bounded_mean import wilson_limits
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.stats.weighted_mean import (
    holm_adjusted,
    kish_size,
    weighted_mean_interval,
)
from amlb_ext.units.conditions import (
    CodedColumn,
    Condition,
    code_columns,
    middle_and_spread,
)

#: Columns of slices.
COLUMNS = (
    "slice",
    "rows",
    "bad",
    "share",
    "low",
    "high",
    "base",
    "lift",
    "p",
    "p_holm",
    "n_features",
)
#: Fewer source rows than this are not searched.
MIN_ROWS = 40
#: Fewer bad source rows in a half than this are not searched.
MIN_BAD = 3
#: Adjusted p-values above this are no finding.
LEVEL = 0.05
#: Rows used to find slices at most.
MOST_FOUND_ON = 20_000
#: Values in the rows that are used to find slices: of a wide table fewer rows are used.
MOST_VALUES = 4_000_000
#: Slices that are judged at most, and their conditions; those on one feature are merged.
_MOST_SLICES, _DEPTH = 5, 3
#: Coverage of the interval of a slice's share.
_COVERAGE = 0.95
#: Trees, each without the feature at the root of those before it.
_TREES = 3
#: Permutations of source rows: the smallest p-value is 1e-5.
_DRAWS = 99_999
#: A slice is chosen from this score on.
_FEWEST_STANDARD_ERRORS = 1.5
#: What each condition beyond the first takes off the score, so that short slices win.
_COST_PER_CONDITION = 0.5
#: Slices that share more than this of the smaller one's rows count as the same ...
_OVERLAP = 0.6
#: ... unless the share of bad rows in one is this many times that in the other.
_WORSE = 1.5
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
        One row per slice, smallest p first, with :data:`COLUMNS`; all numbers come from the
        judging half.
    inside : tuple of ndarray of shape (n,), bool
        For each slice, the rows of the judging half that meet its conditions.
    """

    table: pd.DataFrame
    inside: tuple[np.ndarray, ...]


def search_and_judge(
    features: pd.DataFrame,
    columns: Sequence[Column],
    bad: np.ndarray,
    groups: np.ndarray,
    rng: np.random.Generator,
) -> JudgedSlices:
    """Return slices of the features in which F fails significantly more often than elsewhere.

    Parameters
    ----------
    features : DataFrame of shape (n, d)
        Real rows in canonical form.
    columns : sequence of Column
    bad : ndarray of shape (n,), bool
    groups : ndarray of shape (n,)
        The source row of each row, or its group; all rows of one are in the same half.
    rng : Generator

    Returns
    -------
    JudgedSlices
        With no slice when nothing was found, or there is too little to find anything in.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = pd.DataFrame({"age": rng.integers(18, 80, 800).astype(float)})
    >>> bad = (x["age"] > 60).to_numpy() & (rng.random(800) < 0.5)
    >>> found = search_and_judge(x, [Column("age", "integer")], bad, np.arange(800), rng)
    >>> found.table["slice"].tolist()
    ['age > 60']
    """
    # An empty column would be taken for numbers; the text of a slice is no number.
    no_rows = pd.DataFrame({name: [] for name in COLUMNS}).astype({"slice": object})
    nothing_found = JudgedSlices(table=no_rows, inside=())
    bad = np.asarray(bad, dtype=bool)
    # Source rows are numbered 0, 1, ...: they index arrays of source rows from here on.
    source_rows, source = np.unique(groups, return_inverse=True)
    if len(source_rows) < MIN_ROWS or features.shape[1] == 0:
        return nothing_found
    has_bad_row = np.bincount(source, weights=bad) > 0
    finds = np.zeros(len(source_rows), dtype=bool)
    for stratum in (has_bad_row, ~has_bad_row):
        members = rng.permutation(np.flatnonzero(stratum))
        # Of an odd number either half may get the larger part.
        odd_one = int(rng.integers(2))
        finds[members[: (len(members) + odd_one) // 2]] = True
    # All rows of a source row are in one half, or the halves would not be independent.
    is_finding = finds[source]
    for half in (is_finding, ~is_finding):
        # enough bad source rows, and good rows beside them
        n_bad = len(np.unique(source[half & bad]))
        if n_bad < MIN_BAD or bad[half].all():
            return nothing_found

    data = features[[column.name for column in columns]]
    # Fewer rows of a wide table, but always enough for a tree.
    most = min(max(1000, MOST_VALUES // len(columns)), MOST_FOUND_ON)
    finding_rows = np.flatnonzero(is_finding)
    if len(finding_rows) > most:
        finding_rows = np.sort(rng.choice(finding_rows, most, replace=False))
    finding = _FindingHalf(
        columns=code_columns(data, columns, bad=bad, finding_rows=finding_rows),
        rows=finding_rows,
        bad=bad[finding_rows],
    )
    slices = _search_slices(finding, rng)
    is_judging = ~is_finding
    judged = _judge_slices(
        slices,
        is_judging=is_judging,
        bad=bad[is_judging],
        source=source[is_judging],
        rng=rng,
    )
    table = pd.DataFrame(judged, columns=[*COLUMNS, "inside"])
    table["p_holm"] = holm_adjusted(table["p"].to_numpy(dtype=float))
    table = table[table["p_holm"] <= LEVEL]
    if not len(table):
        return nothing_found
    table = table.sort_values(["p", "lift"], ascending=[True, False])
    shown = table[list(COLUMNS)].reset_index(drop=True)
    return JudgedSlices(table=shown, inside=tuple(table["inside"]))


# Finding: candidates are the nodes of a few trees; none of this sees the judging half.


@dataclass(kw_only=True)
class _FindingHalf:
    """The rows in which slices are searched.

    Attributes
    ----------
    columns : list of CodedColumn
        Columns of all rows of both halves; what is learned comes from these rows alone.
    rows : ndarray of shape (m,), int
        Positions of the finding rows among all rows.
    bad : ndarray of shape (m,), bool
    """

    columns: list[CodedColumn]
    rows: np.ndarray
    bad: np.ndarray


@dataclass(kw_only=True)
class _Candidate:
    """A conjunction of conditions, and how it does on the finding half.

    Attributes
    ----------
    path : dict of int to Condition
        Conditions with rounded bounds, by position of the column.
    inside : ndarray of shape (n,), bool
        Rows of both halves that meet all conditions.
    found_inside : ndarray of shape (m,), bool
        The same of the finding rows alone.
    score : float
        Standard errors by which the share of bad rows exceeds that of all, less what the
        conditions cost.
    """

    path: _Path
    inside: np.ndarray
    found_inside: np.ndarray
    score: float


def _search_slices(
    finding: _FindingHalf, rng: np.random.Generator
) -> list[tuple[_Candidate, list[str]]]:
    """Return the slices to be judged, and their conditions in words.

    They are the most telling candidates, with little overlap.
    """
    # The finding rows may have been thinned to those of one kind.
    if not finding.columns or finding.bad.all() or not finding.bad.any():
        return []
    smallest_leaf = max(5, math.ceil(len(finding.rows) / 50))
    candidates: list[_Candidate] = []
    for path in _tree_paths(finding, rng, smallest_leaf):
        for variant in _simpler_variants(path):
            candidate = _score_candidate(variant, finding)
            if candidate.found_inside.sum() >= smallest_leaf:
                candidates.append(candidate)
    candidates.sort(key=lambda candidate: -candidate.score)

    # Greedy: a candidate is held against all that did better.
    chosen: list[_Candidate] = []
    for candidate in candidates:
        if len(chosen) == _MOST_SLICES or candidate.score < _FEWEST_STANDARD_ERRORS:
            break
        if all(_says_more(candidate, earlier, finding.bad) for earlier in chosen):
            chosen.append(candidate)
    described = []
    for candidate in chosen:
        is_alone = len(candidate.path) == 1
        texts = [
            finding.columns[position].describe(condition, is_alone)
            for position, condition in candidate.path.items()
        ]
        # A condition that holds for every row of both halves has no text.
        if any(texts):
            described.append((candidate, [text for text in texts if text]))
    return described


def _tree_paths(
    finding: _FindingHalf,
    rng: np.random.Generator,
    smallest_leaf: int,
) -> list[_Path]:
    """Return the paths to all nodes of a few trees, each without the roots of those before."""
    scales = [middle_and_spread(coded.distinct) for coded in finding.columns]
    matrix = np.column_stack([coded.x[finding.rows] for coded in finding.columns])
    # scikit-learn's trees take float32: what lies beyond it would become infinite
    largest = float(np.finfo(np.float32).max) / 2
    middles, spreads = np.transpose(scales)
    matrix = np.clip((matrix - middles) / spreads, -largest, largest)
    positions = np.arange(len(finding.columns))
    paths: list[_Path] = []
    for _ in range(_TREES):
        if not len(positions):
            break
        classifier = DecisionTreeClassifier(
            max_depth=_DEPTH,
            min_samples_leaf=smallest_leaf,
            # Bad rows are few: unweighted, a leaf of them would rarely be worth a split.
            class_weight="balanced",
            random_state=draw_int_seed(rng),
        )
        classifier.fit(matrix[:, positions], finding.bad)
        tree = classifier.tree_
        paths += _node_paths(tree, positions, scales)
        if tree.node_count == 1:  # no split: another tree would find none either
            break
        # The strongest feature hides others: the next tree has to do without it.
        root = positions[tree.feature[0]]
        positions = positions[positions != root]
    return paths


def _node_paths(
    tree: Any, positions: np.ndarray, scales: Sequence[tuple[float, float]]
) -> list[_Path]:
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
        middle, spread = scales[position]
        threshold = float(tree.threshold[node] * spread + middle)
        goes_left = bool(tree.missing_go_to_left[node])
        # A second condition on one column narrows the first.
        parent = path.get(position, Condition())
        below = replace(
            parent,
            high=min(parent.high, threshold),
            missing=parent.missing and goes_left,
        )
        above = replace(
            parent,
            low=max(parent.low, threshold),
            missing=parent.missing and not goes_left,
        )
        waiting += [
            (int(tree.children_left[node]), {**path, position: below}),
            (int(tree.children_right[node]), {**path, position: above}),
        ]
    return paths


def _simpler_variants(path: _Path) -> Iterator[_Path]:
    """Yield a path and simpler ones: a condition less, or either a range or missing values."""
    yield path
    for position, condition in path.items():
        others = path.copy()
        del others[position]
        if others:
            yield others
        if condition.n_parts > 1:
            yield {**others, position: Condition(low=np.inf)}
            yield {**others, position: replace(condition, missing=False)}


def _score_candidate(path: _Path, finding: _FindingHalf) -> _Candidate:
    """Round the bounds of a path, and score the rows that meet all its conditions."""
    rounded: _Path = {}
    matches = []
    n_conditions = 0
    for position, condition in path.items():
        coded = finding.columns[position]
        # Rounded before anything is counted: what is printed is what is judged.
        condition = coded.rounded(condition)
        rounded[position] = condition
        matches.append(coded.matches(condition))
        # Without missing values a condition says nothing about them.
        n_conditions += condition.n_parts if coded.n_missing else 1
    inside = np.logical_and.reduce(matches)
    found_inside = inside[finding.rows]
    excess = _standard_errors_above(finding.bad, found_inside)
    return _Candidate(
        path=rounded,
        inside=inside,
        found_inside=found_inside,
        score=excess - _COST_PER_CONDITION * (n_conditions - 1),
    )


def _standard_errors_above(bad: np.ndarray, inside: np.ndarray) -> float:
    """Return by how many standard errors the share inside exceeds the share of all."""
    n_inside = int(inside.sum())
    if not 0 < n_inside < len(bad):
        return -np.inf
    base = bad.mean()
    # Drawn without replacement, so that all rows together have no error.
    variance = base * (1 - base) * (1 / n_inside - 1 / len(bad))
    return float((bad[inside].mean() - base) / np.sqrt(variance))


def _says_more(candidate: _Candidate, earlier: _Candidate, bad: np.ndarray) -> bool:
    """Whether a candidate has other rows than one chosen before, or far worse ones."""
    mine = candidate.found_inside
    others = earlier.found_inside
    is_other = (mine & others).sum() <= _OVERLAP * min(mine.sum(), others.sum())
    return bool(is_other or bad[mine].mean() >= _WORSE * bad[others].mean())


# Judging: on the other half alone, and by source row, for copies of a row are one observation.


def _judge_slices(
    slices: Sequence[tuple[_Candidate, list[str]]],
    *,
    is_judging: np.ndarray,
    bad: np.ndarray,
    source: np.ndarray,
    rng: np.random.Generator,
) -> list[dict[str, object]]:
    """Return the figures of each slice on the rows that did not find it.

    Parameters
    ----------
    slices : sequence of (_Candidate, list of str)
    is_judging : ndarray of shape (n,), bool
        Which m of all rows judge.
    bad, source : ndarray of shape (m,)
        Flags and source rows of the rows that judge.
    rng : Generator
    """
    _, first_row, source_code = np.unique(
        source, return_index=True, return_inverse=True
    )
    n_rows = np.bincount(source_code).astype(float)
    n_bad = np.bincount(source_code, weights=bad)
    base = float(bad.mean())
    judged: list[dict[str, object]] = []
    for candidate, texts in slices:
        is_inside = candidate.inside[is_judging]
        n_inside = np.bincount(source_code, weights=is_inside)
        if (n_inside > 0).sum() < _FEWEST_JUDGED or is_inside.all():
            continue
        rows_inside = n_inside.sum()
        bad_inside = (bad & is_inside).sum()
        share = bad_inside / rows_inside
        effective_size = kish_size(n_inside[n_inside > 0])
        low, high = _share_interval(share, effective_size)
        inside = is_inside[first_row]
        if np.array_equal(inside[source_code], is_inside):
            p = _p_value(n_rows, n_bad, inside=inside, rng=rng)
        else:
            p = _p_value_of_groups(bad, is_inside, source_code)
        judged.append(
            {
                "slice": " and ".join(texts),
                "rows": int(rows_inside),
                "bad": int(bad_inside),
                "share": share,
                "low": low,
                "high": high,
                "base": base,
                "lift": share / base,
                "p": p,
                "n_features": len(texts),
                "inside": candidate.inside & is_judging,
            }
        )
    return judged


def _share_interval(share: float, effective_size: float) -> tuple[float, float]:
    """Return Wilson's interval of a share; the effective size need not be a whole number."""
    size = np.array([effective_size])
    low, high = wilson_limits(share * size, size, _COVERAGE)
    # Rounding may put a limit just outside.
    limits = np.clip([low[0], high[0]], 0.0, 1.0)
    return float(limits[0]), float(limits[1])


def _p_value(
    n_rows: np.ndarray,
    n_bad: np.ndarray,
    *,
    inside: np.ndarray,
    rng: np.random.Generator,
) -> float:
    """Return the one-sided p-value of a slice; the module's docstring says how.

    Parameters
    ----------
    n_rows, n_bad : ndarray of shape (m,)
        Rows and bad rows of each judged source row.
    inside : ndarray of shape (m,), bool
    rng : Generator
    """
    n_inside = int(inside.sum())
    if n_rows.max() == 1:
        # Each source row once: the count of bad rows inside is hypergeometric.
        n_bad_inside = n_bad[inside].sum()
        p_value = hypergeom.sf(
            n_bad_inside - 1, M=len(n_bad), n=int(n_bad.sum()), N=n_inside
        )
        return float(p_value)
    # By how many bad rows each source row exceeds what its number of rows lets expect.
    base = n_bad.sum() / n_rows.sum()
    excess = n_bad - base * n_rows
    # How many source rows of each kind fall inside is all that matters: no row is shuffled.
    kinds, counts = np.unique(excess, return_counts=True)
    kinds_inside = rng.multivariate_hypergeometric(
        counts, n_inside, size=_DRAWS, method="marginals"
    )
    # Sums of floats that are equal on paper differ by rounding.
    observed = excess[inside].sum() - 1e-9
    n_as_large = (kinds_inside @ kinds >= observed).sum()
    # The split that was seen counts as one of the draws, or p could be 0.
    return float((1 + n_as_large) / (1 + _DRAWS))


def _p_value_of_groups(
    bad: np.ndarray, is_inside: np.ndarray, source: np.ndarray
) -> float:
    """Return the one-sided p-value of a slice that holds some rows of a group and not others.

    Parameters
    ----------
    bad, is_inside : ndarray of shape (m,), bool
    source : ndarray of shape (m,), int
        The group of each row, from 0.
    """
    # what each group adds to the covariance of being bad and being inside
    scores = np.bincount(source, (bad - bad.mean()) * (is_inside - is_inside.mean()))
    n_groups = len(scores)
    error = np.sqrt(n_groups) * scores.std(ddof=1)
    n_inside = len(np.unique(source[is_inside]))
    return float(student.sf(scores.sum() / error, n_inside - 1)) if error else 1.0


LOSS_COLUMNS = (
    "task",
    "slice",
    "framework",
    "rows",
    "loss",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
)
_INTERVALS = ("low", "high", "difference_low", "difference_high")


def losses_on_slices(
    task: str,
    *,
    slices: pd.DataFrame,
    inside: Sequence[np.ndarray],
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    clusters: np.ndarray,
    level: float,
    cap: ErrorCap = NO_CAP,
) -> pd.DataFrame:
    """Return the mean loss of F and of each candidate in each slice, with intervals.

    Parameters
    ----------
    task : str
    slices : DataFrame
        See :class:`JudgedSlices`.
    inside : sequence of ndarray of shape (n,), bool
        For each slice, the rows that judge it.
    losses : DataFrame of shape (n, candidates)
        Losses of the candidates, NaN on rows that one has not scored.
    loss_f : ndarray of shape (n,)
    clusters : ndarray of shape (n,)
        The source row of each row.
    level : float
        Coverage of the intervals.
    cap : ErrorCap
        The largest loss that counts. Where the largest would decide in a slice, all its losses
        are plain and without intervals, see :mod:`amlb_ext.stats.heavy_tails`.

    Returns
    -------
    DataFrame
        One row per slice and framework, F first: ``rows``, mean ``loss`` with its interval, and
        ``difference`` from F on the same rows with its own. NaN where there is none.

    Examples
    --------
    >>> table = losses_on_slices(
    ...     "t",
    ...     slices=pd.DataFrame({"slice": ["x > 1"]}),
    ...     inside=[np.array([True, True, True, False])],
    ...     losses=pd.DataFrame({"tree": [0.1, 0.2, 0.3, 9.0]}),
    ...     loss_f=np.array([0.4, 0.5, 0.6, 0.0]),
    ...     clusters=np.arange(4),
    ...     level=0.95,
    ... )
    >>> table[["framework", "rows", "loss", "difference"]].round(3).to_dict("list")
    {'framework': ['F', 'tree'], 'rows': [3, 3], 'loss': [0.5, 0.2], 'difference': [0.0, -0.3]}
    """
    losses_by_name = {F: loss_f}
    for name in losses.columns:
        losses_by_name[str(name)] = losses[name].to_numpy(dtype=float)
    records = []
    for text, is_inside in zip(slices["slice"], inside, strict=True):
        here, vetoes, plain_means = [], [], []
        for name, own_loss in losses_by_name.items():
            rows = is_inside & ~np.isnan(own_loss)
            own, own_f = own_loss[rows], loss_f[rows]
            interval = partial(
                weighted_mean_interval, clusters=clusters[rows], level=level
            )
            estimate = interval(cap.apply(own))
            change = interval(cap.apply(own) - cap.apply(own_f))
            plain = contrast_plainly(own, own_f, cap=cap)
            vetoes.append(plain.judge(change)[1])
            plain_means.append({"loss": plain.g.mean, "difference": plain.difference})
            here.append(
                {
                    "task": task,
                    "slice": text,
                    "framework": name,
                    "rows": int(rows.sum()),
                    "loss": estimate.point,
                    "low": estimate.low,
                    "high": estimate.high,
                    "difference": change.point,
                    "difference_low": change.low,
                    "difference_high": change.high,
                }
            )
        # models of one slice are read side by side: all losses capped, or none
        if any(vetoes):
            for record, means in zip(here, plain_means, strict=True):
                record |= means | dict.fromkeys(_INTERVALS, np.nan)
        records += here
    return pd.DataFrame(records, columns=list(LOSS_COLUMNS))
