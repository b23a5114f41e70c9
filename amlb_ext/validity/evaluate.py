"""Fits what a certificate needs on each fold's training file, and pools the losses over folds.

What is read are the suite's own files, as AMLB would give them to a candidate.

Notation
--------
m candidates, R twins of F; all losses are Brier or squared error on the scaled target, see
:mod:`amlb_ext.core.losses`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from amlb_ext.core import losses
from amlb_ext.core.config import AgreementConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.baseline import EstimatorBaseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.models import ModelSpec
from amlb_ext.suite import Rows
from amlb_ext.validity.label_checks import opinion
from amlb_ext.validity.measures import Losses
from amlb_ext.validity.null import baseline_spec, refit
from amlb_ext.validity.realism import Table
from amlb_ext.validity.task_rows import PARTS, TaskRows
from amlb_ext.validity.unlabelled import Unlabelled, View, view
from amlb_ext.validity.zoo import JUDGES, QUICK_ROWS, Size, fit_zoo, zoo

Entry = dict[str, np.ndarray]


@dataclass
class Scored:
    """Rows of one part, pooled over folds, with every loss; see the module's notation.

    Attributes
    ----------
    losses : Losses
        G (n, m), F (n,), c (n,).
    twins : ndarray of shape (n, R)
    fold, weight, reducible, bad, recorded, support, agrees : ndarray of shape (n,)
        ``recorded`` is the generation's own opinion of the label, ``agrees`` a fresh oracle's;
        ``support`` see :func:`amlb_ext.validity.measures.labels`.
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
    table: Table

    def __len__(self) -> int:
        return len(self.fold)


@dataclass
class Evaluation:
    """All parts of a task, the candidates' names, what could not be fitted, unlabelled rows."""

    names: list[str]
    parts: dict[str, Scored]
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    views: list[View] = field(default_factory=list)


def evaluate(
    rows: TaskRows,
    size: Size,
    refits: int,
    seed: int,
    candidates: Mapping[str, ModelSpec] | None = None,
    far: Unlabelled | None = None,
) -> Evaluation:
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
    """
    specs, spec = dict(candidates or zoo(rows.kind, size)), baseline_spec(rows.settings, rows.kind)
    out = Evaluation(list(specs), {})
    if spec is None:
        out.notes.append("F is a file and cannot be fitted again: there is no null control")
    real = pd.concat([parts["full"].features for _, parts in rows.folds.values()])
    target = pd.concat([parts["full"].target for _, parts in rows.folds.values()])
    look, look_y = Encoder(rows.columns).fit(real), TargetEncoder(rows.kind, rows.labels, target)
    codes = np.arange(len(look.names_) + 1) < look.n_categorical_
    codes[-1] = rows.kind.is_classification
    raw: dict[str, list[Entry]] = {part: [] for part in PARTS}
    for fold, (train, parts) in sorted(rows.folds.items()):
        scorer = _FoldScorer(rows, fold, train, specs, spec, size, refits, seed, out)
        if far is not None and scorer.baseline is not None and not far.support.refused:
            out.views.append(view(rows, fold, train, parts["full"], far, scorer))
        for part, test in parts.items():
            if len(test):
                entry = scorer.score(test)
                X = (look.transform(test.features), look_y.transform(test.target))
                entry["X"], entry["codes"] = np.column_stack(X), codes
                raw[part].append(entry)
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


class _FoldScorer:
    """The models of one fold."""

    def __init__(
        self,
        rows: TaskRows,
        fold: int,
        train: Rows,
        specs: Mapping[str, ModelSpec],
        spec: ModelSpec | None,
        size: Size,
        refits: int,
        seed: int,
        out: Evaluation,
    ) -> None:
        self.fold, self.names, self.refits = fold, list(specs), refits if spec else 0
        self.encoder = Encoder(rows.columns).fit(train.features)
        self.target = TargetEncoder(rows.kind, rows.labels, train.target)
        Z, y = self.encoder.transform(train.features), self.target.transform(train.target)
        shape = (rows.kind, self.target.n_classes, self.encoder.n_categorical_)
        strong = {n: s for n, s in zoo(rows.kind, size).items() if n in JUDGES}
        key = derive_seed(seed, rows.name, fold, "zoo") % 2**31
        most = QUICK_ROWS if size == "quick" else None
        wanted = {f"judge:{n}": s for n, s in strong.items() if specs.get(n) != s} | dict(specs)
        self.models, failed = fit_zoo(wanted, *shape, Z, y, key, most)
        out.dropped.update(failed)
        found = [self.models.get(f"judge:{n}", self.models.get(n)) for n in strong]
        self.judges = [judge for judge in found if judge is not None]
        self.baseline: EstimatorBaseline | None = None
        self.twins: list[EstimatorBaseline] = []
        if spec is not None:
            own = derive_seed(rows.seed, rows.name, fold, "fit") % 2**31
            self.baseline = EstimatorBaseline(spec, *shape).fit(Z, y, own)
            self.twins, reason = refit(self.baseline, Z, y, refits, seed, (rows.name, fold))
            if reason:
                out.notes.append(reason)

    def score(self, test: Rows) -> Entry:
        """Return losses and provenance of one part, row for row."""
        Z, y = self.encoder.transform(test.features), self.target.transform(test.target)
        predicted = {name: model.predict(Z) for name, model in self.models.items()}
        nothing, about = np.full(len(y), np.nan), test.provenance
        G = [losses.row_loss(y, predicted[n]) if n in predicted else nothing for n in self.names]
        F = about["loss"].to_numpy(dtype=float)
        if self.baseline is not None:
            F = losses.row_loss(y, self.baseline.predict(Z))
        twins = [losses.row_loss(y, twin.predict(Z)) for twin in self.twins]
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
) -> Scored:
    both = {name: np.concatenate([e[name] for e in entries])
            for name in entries[0] if name != "codes"}  # fmt: skip
    support, agrees = opinion(both["T"], both["y"], rmse, agreement, n_classes)
    return Scored(
        Losses(both["G"][:, kept], both["F"], both["c"]),
        both["twins"],
        both["fold"],
        both["weight"],
        both["reducible"],
        both["bad"],
        both["recorded"],
        support,
        agrees,
        Table(both["X"], both["c"], entries[0]["codes"]),
    )
