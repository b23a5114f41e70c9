"""What a model is held to before it is believed: its answers, and the rows that it has seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from amlb_ext.core import row_losses
from amlb_ext.core.errors import DataError, ModelError
from amlb_ext.core.frames import number_rows, repeats_earlier
from amlb_ext.core.numbers import are_rounded
from amlb_ext.core.task import Task
from amlb_ext.models.answers import (
    Answers,
    Labels,
    as_number,
    label_text,
    plain_form,
)
from amlb_ext.models.columns import list_names
from amlb_ext.models.given_table import GivenTable

# Two facts that hold for every model at every door, asserted each time.
#
# The plain error rate is the mean of predict(X) != y, and the loss of F is what scikit-learn's
# formulas give from F's own answers. Both are computed here from what the model said, by the names
# of its own classes, apart from everything that the doors do. Where they differ from what a door is
# about to print, that is all that is printed.


#: Rank correlation from which on predictions order rows as the target does.
SAME_ORDER = 0.5
#: Two means that are equal but for rounding.
_RTOL, _ATOL = 1e-6, 1e-9


def check_answers(
    answers: Answers, y: np.ndarray, given: np.ndarray, name: str
) -> None:
    """Raise where what was made of a model's answers contradicts what it said.

    Parameters
    ----------
    answers : Answers of n rows
    y : ndarray of shape (n,)
        Targets as every door knows them: codes of the labels, or numbers in the target's unit.
    given : ndarray of shape (n,)
        The same as the user gave them.
    name : str
        Of the model.

    Raises
    ------
    ModelError

    Examples
    --------
    >>> from amlb_ext.models.answers import RawAnswers
    >>> said = RawAnswers(decided=np.array([1.0, 3.0]))
    >>> y = np.array([1.0, 2.0])
    >>> check_answers(Answers(f=np.array([1.0, 3.0]), raw=said), y, y, "F")
    """
    raw = answers.raw
    if raw.truth is not None:
        check_truth(raw.truth, given, name)
    if answers.decided is None:
        if raw.decided is not None:
            with np.errstate(over="ignore"):
                loss = float(row_losses.squared_error(y, answers.f).mean())
                misses = raw.decided.astype(float) - given.astype(float)
                own = float(np.mean(misses**2))
            spread = float(np.ptp(given.astype(float)))
            of = "its own predictions"
            _check("the squared error", loss, own, of, name, unit=spread**2)
        return
    if raw.decided is not None:
        rate = float((answers.decided != y).mean())
        own = float(np.mean(~_are_equal(raw.decided, given)))
        of = "the mean of predict(X) != y"
        _check("the share of wrong decisions", rate, own, of, name)
    if raw.p is not None and raw.classes is not None:
        brier = float(row_losses.brier_loss(y, answers.f).mean())
        n = len(given)
        hits = [_are_equal(np.full(n, label), given) for label in raw.classes]
        is_hit = np.column_stack(hits)
        # the truth may be a class that the model does not know
        unknown = 1.0 - is_hit.sum(axis=1)
        # scikit-learn's brier_score_loss(scale_by_half=False), which older versions lack
        own = float((((raw.p - is_hit) ** 2).sum(axis=1) + unknown).mean())
        _check("the Brier loss", brier, own, "its own probabilities", name)


def check_truth(truth: np.ndarray, given: np.ndarray, name: str) -> None:
    """Refuse predictions that were made of other rows, or stand in another order.

    Parameters
    ----------
    truth : ndarray of shape (n,)
        Targets that stand beside the predictions.
    given : ndarray of shape (n,)
        Targets of the rows that they are read for.
    name : str

    Raises
    ------
    ModelError

    Examples
    --------
    >>> check_truth(np.array(["1.0", "2"], dtype=object), np.array([1, 2]), "F")
    """
    numbers = [
        pd.to_numeric(pd.Series(each), errors="coerce").to_numpy(dtype=float)
        for each in (truth, given)
    ]
    differs = ~(_are_equal(truth, given) | are_rounded(*numbers))
    if differs.any():
        row = int(np.argmax(differs))
        raise ModelError(
            f"{name} has targets of its own, which differ from the table's in {differs.sum()} of "
            f"{len(given)} rows: {truth[row]} for {given[row]} in row {row}",
            "give predictions of these rows in their order; without that column nothing is checked",
        )


def _are_equal(said: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether values are equal; texts and numbers by what they look like."""
    said, y = np.asarray(said, dtype=object), np.asarray(y, dtype=object)
    if not (isinstance(said[0], str) or isinstance(y[0], str)):
        return said == y
    texts = pd.DataFrame({"said": said, "y": y}).map(
        lambda value: plain_form(label_text(value))
    )
    numbers = texts.map(as_number).astype(float)
    are_equal = (texts["said"] == texts["y"]).to_numpy()
    for column in texts:
        known = numbers[column][~texts[column].duplicated()].dropna()
        if not known.is_unique:
            # 7 and 007 are two classes
            return are_equal
    # 0 and the text 0.0 are one
    return are_equal | (numbers["said"] == numbers["y"]).to_numpy()


def _check(
    what: str, printed: float, own: float, of: str, name: str, unit: float = 1.0
) -> None:
    if np.isclose(printed, own, rtol=_RTOL, atol=_ATOL * unit) or printed == own:
        return
    raise ModelError(
        f"{what} of {name} would be given as {printed:.6g}, and {of} give {own:.6g}: this is a "
        "fault of hardsynth, and nothing else is said",
        "please report it with the kind of the model and the types of the table",
    )


def unit_notes(y: np.ndarray, f: np.ndarray, name: str) -> tuple[str, ...]:
    """Return a note where predictions order rows as the target does, and lose more than its mean.

    Examples
    --------
    >>> price = np.geomspace(1e3, 1e6, 60)
    >>> unit_notes(price, np.log(price), "F")[0][:60]
    'F orders rows as the target does (rank correlation 1.00) and'
    >>> unit_notes(price, price * 1.1, "F")
    ()
    """
    with np.errstate(over="ignore"):
        is_useless = np.mean((f - y) ** 2) > np.var(y)
    if not is_useless or not np.ptp(f):
        return ()
    correlation = float(spearmanr(y, f).statistic)
    if correlation < SAME_ORDER:
        return ()
    return (
        f"{name} orders rows as the target does (rank correlation {correlation:.2f}) and loses "
        f"more than the target's mean would: its median is {np.median(f):.4g}, and the target's "
        f"{np.median(y):.4g}; is that in the target's unit?",
    )


def check_classes(
    classes: Sequence[Any], known: Labels, name: str, *, has_codes: bool = False
) -> None:
    """Raise where a model was fitted on another target, or on its labels in another spelling.

    Parameters
    ----------
    classes : sequence
        Of the model; empty where it names none.
    known : Labels
        Of the rows at hand, which may lack some and have others.
    name : str
        Of the model.
    has_codes : bool
        Whether the model knows codes 0, 1, ... alone, some of which may happen to be labels.

    Raises
    ------
    ModelError

    Examples
    --------
    >>> check_classes(["no", "yes", "maybe"], Labels(("no", "yes")), "F")
    >>> check_classes([0, 1], Labels(("no", "yes")), "F")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ModelError: F knows the classes 0, 1, and the target has none of them: \
no, yes (give the model that was fitted on this target, or the target as the model knows it)
    >>> check_classes([0, 1, 2], Labels(("1", "3", "5")), "F", has_codes=True)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ModelError: F knows the class '0', which the target lacks, and not \
'3', which it has: they seem to be other codes of the classes (give the model that was fitted on \
this target, or the target as the model knows it)
    """
    codes = known.codes(classes)
    if not len(codes) or (codes >= 0).all():
        return
    lacked = set(known.names) - {known.names[code] for code in codes if code >= 0}
    by_spelling = {_spelling(label): label for label in lacked}
    for value, code in zip(classes, codes, strict=True):
        own = label_text(value)
        alike = by_spelling.get(_spelling(own))
        if code < 0 and alike is not None:
            raise ModelError(
                f"{name} knows the class {own!r}, and the target has {alike!r}: nearly the same "
                "label",
                "write the labels of the target as the model knows them",
            )
    remedy = "give the model that was fitted on this target, or the target as the model knows it"
    if (codes < 0).all():
        raise ModelError(
            f"{name} knows the classes {list_names(classes)}, and the target has none of them: "
            f"{list_names(known.names)}",
            remedy,
        )
    # of many classes rows may lack one and have a new one; of two they are written otherwise
    are_codes = has_codes or _count_from(classes) + _count_from(known.names) == 1
    if lacked and (len(classes) == 2 or are_codes):
        unknown = classes[int(np.argmax(codes < 0))]
        raise ModelError(
            f"{name} knows the class {label_text(unknown)!r}, which the target lacks, and not "
            f"{sorted(lacked)[0]!r}, which it has: they seem to be other codes of the classes",
            remedy,
        )


def _count_from(classes: Sequence[Any]) -> float:
    """Return 0 or 1 where classes are the codes that count from there, else NaN."""
    numbers = sorted(as_number(value) or 0.0 for value in classes)
    first = numbers[0]
    counts = first in (0, 1) and numbers == [first + n for n in range(len(numbers))]
    return first if counts else np.nan


def _spelling(label: str) -> str:
    """Return a label without case, outer blanks and a point at its end."""
    return label.strip().rstrip(".").casefold()


# Rows on which a model was fitted, found among the rows on which it is judged.


#: Where more rows than this share are training rows of F, beyond what chance repeats, ...
MOST_SEEN = 0.02
#: ... and by so many standard errors: halves of a small table may repeat few rows of each other.
ERRORS = 2.5
#: Share of rows that a feature tells apart where two of them tell what is a copy.
TELLING = 0.9
#: A row that stands more often is none of these copies.
MOST_COPIES = 5
#: Significant digits that survive single precision and a text file.
_DIGITS = 5


def refuse_seen_test_rows(task: Task) -> None:
    """Refuse a test file that holds rows of the table beside it, in whatever order.

    Raises
    ------
    DataError
    """
    for fold in task.folds:
        refuse_seen_rows(
            GivenTable.of_rows(task.features.iloc[fold.test]),
            GivenTable.of_rows(task.features.iloc[fold.train]),
            "the test file",
            what_seen="rows of the table, which F is fitted on",
            remedy="give a test file of other rows, or leave --test-file out",
        )


def refuse_seen_rows(
    table: GivenTable,
    seen: GivenTable,
    what: str = "X",
    *,
    what_seen: str = "training rows of F",
    remedy: str = "give rows that F was not fitted on",
) -> None:
    """Refuse a table that holds rows on which F was fitted.

    Rows are compared by their values, to five digits: single precision and a text file change no
    more. Some repeat by chance where columns are coarse. How often the training rows repeat among
    themselves says how many.

    Parameters
    ----------
    table : GivenTable of n rows
        Features of the rows on which a model is judged.
    seen : GivenTable of m rows
        Features of its training rows.
    what, what_seen, remedy : str
        What the table and those rows are called in errors, and what to do.

    Raises
    ------
    DataError
    """
    given, others = table.frame, seen.frame
    if table.is_unnamed or seen.is_unnamed:
        # one of them has nothing but the place of its columns
        if given.shape[1] != others.shape[1]:
            return
        others = others.set_axis(given.columns, axis=1)
    common = [name for name in given.columns if name in others.columns]
    if not common or len(others) < 2:
        return
    numeric = {
        name
        for name in common
        if pd.api.types.is_numeric_dtype(given[name])
        and pd.api.types.is_numeric_dtype(others[name])
    }
    given = _comparable(given[common], numeric)
    others = _comparable(others[common], numeric)
    # numbers and names of rows may have been given anew, and would tell equal rows apart
    telling = [
        name
        for name in common
        if not others[name].is_unique or (name in numeric and (others[name] % 1).any())
    ]
    for names in (common, telling):
        if not names:
            continue
        asked, seen_rows = number_rows(given[names], others[names])
        share = float(np.isin(asked, seen_rows[seen_rows >= 0]).mean())
        # training rows repeat each other as often as other rows repeat them
        by_chance = float(others[names].duplicated(keep=False).mean())
        pooled = (share * len(given) + by_chance * len(others)) / (
            len(given) + len(others)
        )
        # repeats among training rows come in pairs, which is half as many of them
        error = np.sqrt(pooled * (1 - pooled) * (1 / len(given) + 2 / len(others)))
        if share - by_chance > max(MOST_SEEN, ERRORS * error):
            raise DataError(
                f"{round(share * len(given))} of {len(given)} rows of {what} are {what_seen}",
                remedy,
            )


def count_copies(task: Task, fold: int) -> int:
    """Return the test rows that copy a training row, target included; 0 where chance may do it.

    Training rows repeat each other as often as test rows repeat them, so how often says nothing
    here. Rows that repeat by chance are Poisson counts of many rates, whose moments are log-convex:
    of ``f_k`` distinct rows that stand k times in the table,
    ``k f_k^2 <= (k + 1) f_(k-1) f_(k+1)``. A table that was stacked twice has more pairs than its
    single rows and triples allow. Rows drawn with replacement look like chance, but where two
    features differ in nearly every other row: there chance makes no copies.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    """
    [numbers] = number_rows(task.features.assign(**{task.target_name: task.target}))
    split = task.folds[fold]
    copies = int(np.isin(numbers[split.test], numbers[split.train]).sum())
    if copies <= MOST_SEEN * len(split.test):
        return 0
    # one row that stands often is a mark, such as all zeros, and no copy
    few = np.flatnonzero(np.bincount(numbers)[numbers] <= MOST_COPIES)
    distinct = task.features.iloc[few[~repeats_earlier(numbers[few])]]
    copied = np.isin(
        numbers[split.test], np.intersect1d(numbers[split.train], numbers[few])
    )
    is_much = copied.sum() > MOST_SEEN * len(split.test)
    if is_much and (distinct.nunique() >= TELLING * len(distinct)).sum() >= 2:
        return int(copied.sum())
    f = np.append(np.bincount(np.bincount(numbers)), (0, 0)).astype(float)
    fewer, own, more = f[1:-2], f[2:-1], f[3:]
    k = np.arange(2, len(f) - 1)
    excess = k * own**2 - (k + 1) * fewer * more
    # of counts that none was seen of some may be expected
    fewer, more = fewer + 1, more + 1
    variance = 4 * k**2 * own**3 + (k + 1) ** 2 * fewer * more * (fewer + more)
    return copies if (excess > ERRORS * np.sqrt(variance)).any() else 0


def _comparable(frame: pd.DataFrame, numeric: Collection[str]) -> pd.DataFrame:
    """Return values that are equal where they were before they were written or rounded."""
    columns = {}
    for name, values in frame.items():
        if name in numeric:
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            with np.errstate(divide="ignore", invalid="ignore"):
                size = np.floor(np.log10(np.abs(numbers)))
            unit = 10.0 ** (np.where(np.isfinite(size), size, 0.0) - _DIGITS + 1)
            columns[name] = np.round(numbers / unit) * unit
        else:
            columns[name] = values.astype(object).map(label_text, na_action="ignore")
    return pd.DataFrame(columns).reset_index(drop=True)
