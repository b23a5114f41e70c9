"""Fits what a certificate needs on each fold's training file, and pools the losses over folds.

What is read are the suite's own files, as AMLB would give them to a candidate. The losses of F and
of its re-fits stand in the files' provenance; where they do not, F is fitted again here.

Notation
--------
m candidates, R twins of F; all losses are Brier or squared error on the scaled target, see
:mod:`amlb_ext.core.row_losses`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.config import AgreementConfig
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.registry import ModelSpec
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.suite import Rows
from amlb_ext.validity.candidates import (
    JUDGES,
    QUICK_ROWS,
    WHOLE,
    Size,
    candidate_zoo,
    candidates_beside,
    fit_zoo,
)
from amlb_ext.validity.label_measures import judge_labels
from amlb_ext.validity.measures import Losses
from amlb_ext.validity.realism_measures import ScaledTable
from amlb_ext.validity.refits import baseline_spec, refit_baseline, stored_refits
from amlb_ext.validity.task_rows import PARTS, TaskRows
from amlb_ext.validity.unlabelled import FoldView, Unlabelled, view_fold

Entry = dict[str, np.ndarray]


@dataclass
class ScoredRows:
    """Rows of one part, pooled over folds, with every loss; see the module's notation.

    Attributes
    ----------
    losses : Losses
        G (n, m), F (n,), c (n,).
    twins : ndarray of shape (n, R)
    fold, weight, reducible, bad, recorded, support, agrees : ndarray of shape (n,)
        ``recorded`` is the generation's own opinion of the label, ``agrees`` a fresh oracle's;
        ``support`` see :func:`amlb_ext.validity.label_measures.judge_labels`.
    table : Table
    """

    losses: Losses
    twins: np.ndarray
    fold: np.ndarray
    weight: np.ndarray
    reducible: np.ndarray
    bad: np.ndarray
    recorded: np.ndarray
    support: np.ndarray
    agrees: np.ndarray
    table: ScaledTable

    def __len__(self) -> int:
        return len(self.fold)


@dataclass
class TaskEvaluation:
    """All parts of a task, the candidates' names, what could not be fitted, unlabelled rows.

    ``capped`` says which candidates saw fewer training rows than F; empty for none.
    """

    names: list[str]
    parts: dict[str, ScoredRows]
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    views: list[FoldView] = field(default_factory=list)
    capped: str = ""


def evaluate_task(
    rows: TaskRows,
    size: Size,
    refits: int,
    seed: int,
    candidates: Mapping[str, ModelSpec] | None = None,
    far: Unlabelled | None = None,
    workers: int = 1,
) -> TaskEvaluation:
    """Fit candidates, F and its twins on every fold and score all parts.

    Parameters
    ----------
    rows : TaskRows
    size : {'quick', 'full'}
    refits : int
        R.
    seed : int
    candidates : mapping of str to ModelSpec, optional
        In place of the zoo.
    far : Unlabelled, optional
    workers : int
        Processes, a fold each; they change nothing but time.
    """
    own = baseline_spec(rows.settings, rows.kind)
    specs = dict(candidates or candidates_beside(own, rows.kind, size))
    # a user's own candidates see all rows that F saw, whatever that costs
    whole = frozenset(specs if candidates else WHOLE)
    ask = _Ask(specs, size, refits, seed, stored_refits(rows, refits), far, whole)
    out = TaskEvaluation(list(specs), {})
    fewer = [name for name in specs if name not in whole]
    most = max((len(train) for train, _ in rows.folds.values()), default=0)
    if size == "quick" and fewer and most > QUICK_ROWS:
        out.capped = (
            f"{', '.join(fewer)} saw at most {QUICK_ROWS} training rows, the other candidates as "
            f"many as F (up to {most}); 'hardsynth certify DIR --size full' gives all rows to all"
        )
    if own is None:
        out.notes.append("F is a file and cannot be fitted again: there is no null control")
    real = pd.concat([parts["full"].features for _, parts in rows.folds.values()])
    target = pd.concat([parts["full"].target for _, parts in rows.folds.values()])
    look, look_y = (
        Encoder(rows.columns, known="table").fit(real),
        TargetEncoder(rows.kind, rows.labels, target),
    )
    codes = np.arange(len(look.names_) + 1) < look.n_categorical_
    codes[-1] = rows.kind.is_classification
    raw: dict[str, list[Entry]] = {part: [] for part in PARTS}
    jobs = [(replace(rows, folds={k: rows.folds[k]}), k, ask) for k in sorted(rows.folds)]
    scored = dict(run_jobs(score_fold, jobs, min(workers, len(jobs))))
    for number, (single, fold, _) in enumerate(jobs):
        done: _FoldScores = scored[number]
        out.dropped.update(done.dropped)
        out.notes += done.notes
        out.views += done.views
        for part, entry in done.entries.items():
            test = single.folds[fold][1][part]
            X = (look.transform(test.features), look_y.transform(test.target))
            raw[part].append({**entry, "X": np.column_stack(X), "codes": codes})
    out.names = [name for name in specs if name not in out.dropped]
    kept = [list(specs).index(name) for name in out.names]
    rmse = 0.0
    if not rows.labels:
        gaps = np.concatenate([e["T"] - e["y"] for e in raw["full"]])
        rmse = float(np.sqrt((gaps**2).mean()))
    agreement = AgreementConfig(**rows.settings["agreement"])
    for part, entries in raw.items():
        if entries:
            out.parts[part] = _pool(entries, kept, rmse, agreement, len(rows.labels))
    return out


@dataclass(frozen=True)
class _Ask:
    """What every fold is asked.

    ``stored`` when the losses of F's re-fits stand in the files; ``whole`` are the candidates that
    see all training rows.
    """

    specs: Mapping[str, ModelSpec]
    size: Size
    refits: int
    seed: int
    stored: bool
    far: Unlabelled | None
    whole: frozenset[str] = frozenset()


@dataclass
class _FoldScores:
    """What one fold answers, by part of the task."""

    entries: dict[str, Entry] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    views: list[FoldView] = field(default_factory=list)


def score_fold(rows: TaskRows, fold: int, ask: _Ask) -> _FoldScores:
    """Fit the models of one fold and score its parts; a job of :func:`evaluate_task`."""
    train, parts = rows.folds[fold]
    scorer = _FoldScorer(rows, fold, train, ask)
    out = _FoldScores(dropped=scorer.dropped, notes=scorer.notes)
    if ask.far is not None and scorer.baseline is not None and not ask.far.support.refused:
        out.views.append(view_fold(rows, fold, train, parts["full"], ask.far, scorer))
    out.entries = {part: scorer.score(test) for part, test in parts.items() if len(test)}
    return out


class _FoldScorer:
    """The models of one fold."""

    def __init__(self, rows: TaskRows, fold: int, train: Rows, ask: _Ask) -> None:
        spec = baseline_spec(rows.settings, rows.kind)
        self.fold, self.names, self.refits = fold, list(ask.specs), ask.refits if spec else 0
        self.stored = ask.stored and spec is not None
        self.notes: list[str] = []
        self.encoder = Encoder(rows.columns).fit(train.features)
        self.target = TargetEncoder(rows.kind, rows.labels, train.target)
        Z, y = self.encoder.transform(train.features), self.target.transform(train.target)
        shape = (rows.kind, self.target.n_classes, self.encoder.n_categorical_)
        # the limits on labels were set with these judges, so they do not follow F's rounds
        strong = {n: s for n, s in candidate_zoo(rows.kind, ask.size).items() if n in JUDGES}
        key = derive_seed(ask.seed, rows.name, fold, "zoo") % 2**31
        most = QUICK_ROWS if ask.size == "quick" else None
        others = {f"judge:{n}": s for n, s in strong.items() if ask.specs.get(n) != s}
        self.models, self.dropped = fit_zoo(
            others | dict(ask.specs), *shape, Z, y, key, most, ask.whole
        )
        found = [self.models.get(f"judge:{n}", self.models.get(n)) for n in strong]
        self.judges = [judge for judge in found if judge is not None]
        self.twins: list[EstimatorBaseline] = []
        self._fit_baseline: Callable[[], EstimatorBaseline] | None = None
        if spec is not None:
            own = derive_seed(rows.seed, rows.name, fold, "fit") % 2**31
            F = EstimatorBaseline(spec, *shape)
            self._fit_baseline = partial(F.fit, Z, y, own)
            if not self.stored:
                self.twins, reason = refit_baseline(
                    F, Z, y, ask.refits, ask.seed, (rows.name, fold)
                )
                self.notes += [reason] if reason else []

    @cached_property
    def baseline(self) -> EstimatorBaseline | None:
        """F, fitted again at the first use; None where it is a file."""
        return self._fit_baseline() if self._fit_baseline else None

    def score(self, test: Rows) -> Entry:
        """Return losses and provenance of one part, row for row."""
        Z, y = self.encoder.transform(test.features), self.target.transform(test.target)
        predicted = {name: model.predict(Z) for name, model in self.models.items()}
        nothing, about = np.full(len(y), np.nan), test.provenance
        G = [
            row_losses.row_loss(y, predicted[n]) if n in predicted else nothing for n in self.names
        ]
        F = about["loss"].to_numpy(dtype=float)
        if not self.stored and self.baseline is not None:
            F = row_losses.row_loss(y, self.baseline.predict(Z))
        if self.stored:
            twins = [about[f"null_{k}"].to_numpy(dtype=float) for k in range(self.refits)]
        else:
            twins = [row_losses.row_loss(y, twin.predict(Z)) for twin in self.twins]
            twins += [nothing] * (self.refits - len(twins))
        fitted = {id(model): predicted[name] for name, model in self.models.items()}
        T = np.mean([fitted[id(judge)] for judge in self.judges], axis=0)
        return {
            "G": np.column_stack(G),
            "F": F,
            "twins": np.column_stack(twins) if twins else np.empty((len(y), 0)),
            "T": T,
            "y": y,
            "c": about["parent_row"].to_numpy(),
            "fold": np.full(len(y), self.fold),
            "weight": about["weight"].to_numpy(dtype=float),
            "reducible": about["reducible"].to_numpy(dtype=float),
            "bad": (about["origin"] == "bad").to_numpy(),
            "recorded": about["label_agrees"].to_numpy(dtype=bool),
        }


def _pool(
    entries: list[Entry], kept: list[int], rmse: float, agreement: AgreementConfig, n_classes: int
) -> ScoredRows:
    both = {name: np.concatenate([e[name] for e in entries])
            for name in entries[0] if name != "codes"}  # fmt: skip
    support, agrees = judge_labels(both["T"], both["y"], rmse, agreement, n_classes)
    return ScoredRows(
        Losses(both["G"][:, kept], both["F"], both["c"]),
        both["twins"],
        both["fold"],
        both["weight"],
        both["reducible"],
        both["bad"],
        both["recorded"],
        support,
        agrees,
        ScaledTable(both["X"], both["c"], entries[0]["codes"]),
    )
