"""A fold as the suite wants it: parts of real and made rows, with provenance and figures.

Nothing is fitted or made here. Each function writes the rows for one ``target``, the position of
a task in its group: here, and nowhere before, targets part ways. Notation as in
:mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.errors import ModelError
from amlb_ext.core.frames import number_rows, repeats_earlier
from amlb_ext.core.notes import Note
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import Baseline
from amlb_ext.hardening.baseline.replacements import substituted_names
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.hardening.hardness import note_no_failures, raw_hardness
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, TargetModels
from amlb_ext.hardening.made_rows.screening import MadeSide
from amlb_ext.hardening.oracle import check_labels
from amlb_ext.hardening.prepare import Prepared
from amlb_ext.hardening.split import PARTS
from amlb_ext.hardening.weights import repeat_by_weight
from amlb_ext.models.checks import count_copies
from amlb_ext.stats.weighted_mean import kish_size
from amlb_ext.suite import FittedRows, Part, Rows
from amlb_ext.suite.copy_counts import is_made

#: Fewer hard training rows than this make no training file for ``<task>_hard``.
MIN_HARD_TRAIN = 10
#: The kind of note for each place of rows that ``_hard`` leaves out.
_LEFT_OUT = {
    "train_real": "real training rows met",
    "train_made": "made training rows met",
    "test_made": "made test rows met",
}


@dataclass(frozen=True)
class HardFold:
    """What one fold gives.

    Attributes
    ----------
    train : Rows
        The rows F was trained on.
    parts : dict of str to Part
        Keyed by the suffix of the AMLB task: ``full``, ``""``, ``bad``, ``ga``, ``synthetic``,
        ``region``, ``hard``. A fold without failures has ``full`` and ``region`` only. A main part
        and a region that would hold the rows of ``full`` are left out.
    summary : dict
        Counts, F's score on each part (an rmse in the target's own unit), how the threshold was
        set; JSON values.
    notes : list of Note
        What happened while the rows were made.
    """

    train: Rows
    parts: dict[str, Part]
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def assemble_fold(
    task: Task,
    fold: int,
    prepared: Prepared,
    *,
    test_side: MadeSide | None,
    train_side: MadeSide | None,
    target: int,
) -> HardFold:
    """Put real and made rows together as the suite wants them, with the figures of the fold.

    Parameters
    ----------
    task : Task
    fold : int
    prepared : Prepared
    test_side, train_side : MadeSide or None
        As :func:`make_both_sides` returns them.
    target : int
        Position of the task in its group.
    """
    models = prepared.models
    config = models.config
    test = prepared.test
    own = _OneTarget(task=task, fold=fold, prepared=prepared, target=target)
    train_rows = own.training_rows()
    if models.ledger is not None:
        own.ask_together(test_side, train_side)

    # the whole test fold is written once; other parts with real rows are picked from it
    full = own.real_rows(test, own.fitted.refits)
    region = full.take(prepared.region_rows)
    # no part but ``hard`` has training rows of its own: the others share those of the fold
    parts = {"full": Part(full, None)}
    # AMLB would run the same rows twice; equal weights draw them all
    if not region.provenance.equals(full.provenance):
        parts["region"] = Part(region, None)
    pair_facts: dict[str, Any] = {}
    pair_notes: list[Note] = []
    if test_side is not None:
        blocks = {"bad": full.take(test.is_bad)}
        blocks |= own.made_rows(test, test_side, own.fitted.refits)
        if config.composition:
            rng = random_stream(config.seed, *models.key, "weighted")
            weighted = full.take(repeat_by_weight(test.weight, rng))
            main = _stack_parts({"weighted": weighted, **blocks}, config.composition)
            if not main.provenance.equals(full.provenance):
                parts[""] = Part(main, None)
        for name, block in blocks.items():
            parts[name] = Part(block, None)
        if config.train_hard:
            # hard rows for hard rows, whatever the main test file holds
            chosen = [part for part in config.composition if part != "weighted"]
            tests = _stack_parts(blocks, chosen or ("bad", "synthetic"))
            hard, pair_facts, pair_notes = own.hard_pair(train_side, tests)
            if hard is not None:
                parts["hard"] = hard

    summary = own.summary(test_side) | pair_facts
    summary["composition"] = list(config.composition)
    notes = [*_fold_notes(prepared, test_side), *pair_notes]
    copies = count_copies(task, fold)
    if copies:
        counts = {"rows": copies, "tested": len(task.folds[fold].test)}
        notes.insert(0, Note(kind="copies", counts=counts))
    return HardFold(train_rows, parts, summary, notes)


@dataclass(frozen=True, kw_only=True)
class _OneTarget:
    """A fold as it is written for one of its targets.

    Attributes
    ----------
    task : Task
    fold : int
    prepared : Prepared
    target : int
        Position of the task in its group.
    """

    task: Task
    fold: int
    prepared: Prepared
    target: int

    @property
    def models(self) -> FoldModels:
        """Those of the whole fold."""
        return self.prepared.models

    @property
    def fitted(self) -> TargetModels:
        """F, T and the scale of this target."""
        return self.models.targets[self.target]

    def fit_to_train(self, train: pd.DataFrame, test: pd.DataFrame) -> FittedRows:
        """Return test rows as AMLB can read them beside these training rows."""
        fitted, _ = self.prepared.chooser.fit(train, test, self.task)
        return fitted

    def ask_together(
        self, test_side: MadeSide | None, train_side: MadeSide | None
    ) -> None:
        """Ask F and each re-fit, in one call, about all rows of the test side that will be written.

        For an F whose answers cost; they are remembered, and found again row by row. Among the rows
        are those of ``_hard`` as they will stand beside its own training rows.
        """
        models, prepared = self.models, self.prepared
        test = prepared.test
        made = test_side.made if test_side is not None else []
        Z = [test.Z, *(rows.Z for rows in made)]
        if train_side is not None:
            hard_train = [prepared.train.features[prepared.train.is_bad]]
            hard_train += [rows.features for rows in train_side.made]
            hard_test = [test.features[test.is_bad], *(rows.features for rows in made)]
            fitted = self.fit_to_train(
                pd.concat(hard_train, ignore_index=True),
                pd.concat(hard_test, ignore_index=True),
            )
            changed = sorted({row for row, _ in fitted.cells})
            if changed:
                Z.append(models.encoder.transform(fitted.features.iloc[changed]))
        asked = np.vstack(Z)
        models.predict_baseline(asked)
        for refit in itertools.chain(*(target.refits for target in models.targets)):
            # a clone of an F that came fitted may refuse rows, and has no losses there
            refusals = (ModelError,) if refit.comes_fitted else ()
            with contextlib.suppress(*refusals):
                refit.predict(asked)
        assert models.ledger is not None
        models.ledger.reserved = 0

    # The figures of a fold.

    def summary(self, side: MadeSide | None) -> dict[str, Any]:
        """Return counts, scores and remarks of a fold; the order is that of the manifest.

        ``side`` is what was made from the test rows; None where none of them failed.
        """
        models, prepared = self.models, self.prepared
        test = prepared.test
        train = prepared.train
        summary: dict[str, Any] = {
            "rule": models.rule.rule,
            "alpha": models.rule.alpha,
            "alpha_reason": models.rule.reason,
            # AMLB fits F again with it
            "seed": derive_int_seed(models.config.seed, *models.key, "fit"),
            "train": prepared.n_train,
            "test": len(test),
            "bad": int(test.is_bad.sum()),
            "bad_train": int(train.is_bad.sum()),
            # named even where nothing was made: verify holds such folds to the rule
            "augmented": 0,
            "synthetic": 0,
            "dropped": {},
            "region": {
                "rows": len(prepared.region_rows),
                "with_replacement": prepared.region_repeats,
                "effective_size": kish_size(test.weight),
                # a row that F and T agree on counts next to nothing, yet the sum must not be 0
                "effective_size_reducible": kish_size(
                    test.reducible[:, self.target] + 1e-12
                ),
            },
            "score": self._scores(side),
            **prepared.written.to_json(),
        }
        if models.ledger is not None:
            summary["asked"] = models.ledger.to_json()
        baseline, refits = self.fitted.baseline, self.fitted.refits
        if baseline.comes_fitted:
            # what F was fitted on is not known, so what its re-fits were fitted on is said
            summary["refits"] = {
                "count": len(refits),
                "rows": prepared.n_train - prepared.n_train // PARTS if refits else 0,
                "problem": baseline.refit_problem_,
            }
        if side is not None:
            summary |= side.counts()
            if models.relations is not None:
                summary["relations"] = models.relations.to_json()
        return summary

    def _scores(self, side: MadeSide | None) -> dict[str, float]:
        """Return F's score on the test rows, and on the bad and made ones where it can be asked."""
        test, target, span = self.prepared.test, self.target, self.fitted.scale.span
        parts = {"full": test}
        if side is not None:
            parts["bad"] = test.take(test.is_bad)
            parts["ga"] = side.augmented.rows
            parts["synthetic"] = side.synthetic.rows
        scores = {}
        for part, rows in parts.items():
            y = rows.y[:, target]
            f = rows.f[:, target]
            # of made rows f is NaN where F is a file of predictions
            can_score = len(rows) > 0 and not np.isnan(f).any()
            # the summary always names the real rows, whatever their score
            if part in ("full", "bad") or can_score:
                name, score = row_losses.summary_score(y, f, span)
                # the score of the whole test fold is listed under its own name, as "rmse"
                scores[name if part == "full" else part] = score
        return scores

    # Rows as the suite wants them: features and target in canonical form, and provenance.

    def training_rows(self) -> Rows:
        """Return the rows F was trained on, with what fits without a part say of that part.

        Their provenance has ``source_row``, and where F can be fitted again ``oof_part``, the part
        of the training rows that a row was left out with, ``oof_loss`` and ``oof_bad``, what the
        fit of F without that part loses on the row and whether K calls it bad, and ``oof_weight``,
        ``P(bad | x)`` by trees that have not seen the row. Of an F that came fitted the fits are
        its clones; where it has none, as a file of predictions, and where rows are judged forward
        in time, which leaves the oldest out, there is ``source_row`` alone.
        """
        task = self.task
        rows = task.folds[self.fold].train
        provenance = {"source_row": task.row_ids[rows], **_group_column(task, rows)}
        judged = self.prepared.out_of_fold
        if judged is not None:
            y = self.prepared.train.y[:, self.target]
            provenance["oof_part"] = judged.part
            provenance["oof_loss"] = row_losses.row_loss(y, judged.f[:, self.target])
            provenance["oof_bad"] = judged.is_bad
            provenance["oof_weight"] = judged.weight
        features = self.prepared.train.features
        # the oldest rows of a time are not judged; else these are all, and no second copy
        if len(features) < len(rows):
            features = task.features.iloc[rows]
        return Rows(
            features=features.reset_index(drop=True),
            target=task.target.iloc[rows].reset_index(drop=True),
            provenance=pd.DataFrame(provenance),
        )

    def real_rows(self, rows: JudgedRows, refits: Sequence[Baseline] = ()) -> Rows:
        """Return real rows as they are written, with this target.

        ``refits`` are F's, whose losses are noted; none where they have seen the rows.
        """
        provenance = self._provenance(
            rows,
            origin=np.where(rows.is_bad, "bad", "good"),
            # a real row comes from itself
            parent=rows.row,
            refits=refits,
        )
        return Rows(
            features=rows.features.reset_index(drop=True),
            # as in the table: a target that went through the scale may differ in its last bit
            target=self.task.target.iloc[rows.row].reset_index(drop=True),
            provenance=provenance,
        )

    def made_rows(
        self, real: JudgedRows, side: MadeSide, refits: Sequence[Baseline] = ()
    ) -> dict[str, Rows]:
        """Return the made rows of a side by origin, without origins that have none.

        ``real`` are the real rows of the side; ``refits`` as in :meth:`real_rows`.
        """
        made = {"ga": side.augmented.rows, "synthetic": side.synthetic.rows}
        blocks = {}
        for origin, rows in made.items():
            if not len(rows):
                continue
            provenance = self._provenance(
                rows,
                origin=np.full(len(rows), origin, dtype=object),
                # from positions among the side's real rows to those in the table
                parent=real.row[rows.parent],
                refits=refits,
            )
            y = rows.y[:, self.target]
            values = self.fitted.scale.inverse(y, self.task.target_name)
            blocks[origin] = Rows(rows.features, values, provenance)
        return blocks

    def _provenance(
        self,
        rows: JudgedRows,
        *,
        origin: np.ndarray,
        parent: np.ndarray,
        refits: Sequence[Baseline],
    ) -> pd.DataFrame:
        """Return where rows come from, and what F, K and the oracle say of them.

        ``parent`` are positions in the table; rows are named as in the source, made ones by -1.
        """
        task, target = self.task, self.target
        ids = task.row_ids.astype(np.int64)
        y = rows.y[:, target]
        f = rows.f[:, target]
        columns = {
            "origin": origin,
            "source_row": np.where(rows.row >= 0, ids[rows.row], -1),
            "parent_row": ids[parent],
            **_group_column(task, parent),
            "hardness": rows.hardness,
            "loss": row_losses.row_loss(y, f),
            "reducible": rows.reducible[:, target],
            "label_support": rows.support[:, target],
            "label_agrees": rows.agrees[:, target],
            "weight": rows.weight,
            **_prediction_columns(self.fitted.scale, f),
            **_refit_columns(refits, rows.Z, y),
            "substituted": rows.substituted,
        }
        if self.models.relations is not None:
            columns["put_back"] = rows.put_back
        return pd.DataFrame(columns)

    # The pair <task>_hard: hard rows of both sides, to train on and to test on.

    def hard_pair(
        self, train_side: MadeSide | None, tests: Rows
    ) -> tuple[Part | None, dict[str, Any], list[Note]]:
        """Return hard rows of both sides, fields for the summary, and remarks.

        The pair is None where the training rows that are hard are too few to train on.
        """
        if train_side is None:
            return None, {}, [Note(kind="no hard failures")]
        task, prepared = self.task, self.prepared
        bad_train = prepared.train.take(prepared.train.is_bad)
        # without re-fits: of training rows a re-fit is no judge, being fitted on most of them
        real_block = self.real_rows(bad_train)
        made_blocks = self.made_rows(prepared.train, train_side)
        # a test row stands in files as it came and as it was fitted to the training rows
        own_test = task.features.iloc[task.folds[self.fold].test]
        pair, left_out = separate_sides(
            stack_rows([real_block, *made_blocks.values()]),
            tests,
            real=(task.features, prepared.test.features),
            tested=(own_test, prepared.test.features),
            fit=self.fit_to_train,
        )
        rows = pair.train
        assert rows is not None
        facts = {"hard_train": {**train_side.counts(), "left_out": left_out}}
        notes = [*train_side.notes]
        for place, kind in _LEFT_OUT.items():
            if left_out[place]:
                notes.append(Note(kind=kind, counts={"rows": left_out[place]}))
        n_targets = int(rows.target.nunique())
        if len(rows) < MIN_HARD_TRAIN or n_targets < 2:
            counts = {"rows": len(rows), "targets": n_targets}
            notes.append(Note(kind="little hard training", counts=counts))
            return None, facts, notes
        return Part(self._make_readable(pair.test, rows), rows), facts, notes

    def _make_readable(self, tests: Rows, train: Rows) -> Rows:
        """Return test rows with what these training rows do not know replaced, and judged again.

        The hard training rows are few, so they know fewer categories than the fold's own.
        """
        fitted = self.fit_to_train(train.features, tests.features)
        if not fitted.cells:
            return tests
        names = substituted_names(self.task, fitted.cells, len(tests))
        # cells may have been replaced before, beside the fold's own training rows
        pairs = zip(tests.provenance["substituted"], names, strict=True)
        all_names = [",".join(filter(None, pair)) for pair in pairs]
        # what F, K and the oracle said of a row before its cells were replaced holds no more
        provenance = tests.provenance.assign(substituted=all_names)
        if self.models.can_search:
            changed = np.flatnonzero(names != "")
            again = self._judge_again(
                fitted.features.iloc[changed], tests.target.iloc[changed]
            )
            for name, values in again.items():
                provenance.loc[changed, name] = values
        return Rows(fitted.features, tests.target, provenance)

    def _judge_again(
        self, features: pd.DataFrame, values: pd.Series
    ) -> dict[str, np.ndarray]:
        """Return the columns of the provenance that F, K and the oracle give rows as they stand.

        The hardness of rows with several targets is not among them: no target alone decides it.
        """
        models, fitted = self.models, self.fitted
        Z = models.encoder.transform(features)
        y = fitted.scale.transform(values)
        f = fitted.baseline.predict(Z)
        t = fitted.oracle.predict(Z)
        columns = _prediction_columns(fitted.scale, f)
        columns |= _refit_columns(fitted.refits, Z, y)
        columns["label_support"], columns["label_agrees"] = check_labels(
            t, y, rmse=fitted.oracle.rmse_
        )
        columns["loss"] = row_losses.row_loss(y, f)
        columns["reducible"] = raw_hardness("reducible", y, f, t)
        if len(models.targets) == 1:
            # rules read rows with an axis of targets
            columns["hardness"] = models.rule.hardness(
                y[:, None], f[:, None], t[:, None]
            )
        return columns


def _stack_parts(blocks: Mapping[str, Rows], names: Sequence[str]) -> Rows:
    """Return the rows of the named parts, in that order; the bad rows where none has any."""
    chosen = [blocks[name] for name in names if name in blocks]
    # a composition of made rows alone may find none of them
    return stack_rows(chosen or [blocks["bad"]])


def _fold_notes(prepared: Prepared, side: MadeSide | None) -> list[Note]:
    """Return what happened on the test side, which may lack failures."""
    models = prepared.models
    notes = prepared.written.notes()
    if models.ledger is not None:
        notes.append(Note(kind="asked", counts=models.ledger.to_json()))
    if models.relations is not None:
        notes += models.relations.leaks()
    if side is None:
        return [*notes, note_no_failures(models.rule, prepared.test.hardness)]
    if models.relations is not None:
        n_unusable = int((prepared.test.is_bad & ~prepared.test.is_feasible).sum())
        if n_unusable:
            notes.append(Note(kind="infeasible failures", counts={"rows": n_unusable}))
    return [*notes, *side.notes]


def stack_rows(blocks: list[Rows]) -> Rows:
    """Return the rows of all blocks, in order."""
    features = [block.features for block in blocks]
    targets = [block.target for block in blocks]
    provenances = [block.provenance for block in blocks]
    return Rows(
        features=pd.concat(features, ignore_index=True),
        target=pd.concat(targets, ignore_index=True),
        provenance=pd.concat(provenances, ignore_index=True),
    )


def _group_column(task: Task, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Say which group rows of the table belong to, where the user names groups."""
    clusters = None if task.order is None else task.order.clusters
    return {} if clusters is None else {"group": clusters[rows]}


def _prediction_columns(scale: TargetEncoder, f: np.ndarray) -> dict[str, np.ndarray]:
    """Return F's predictions as columns: ``f`` in the target's unit, or ``f_0``, ... per label."""
    if not scale.n_classes:
        return {"f": f * scale.span + scale.low}
    return {f"f_{code}": f[:, code] for code in range(scale.n_classes)}


def _refit_columns(
    refits: Sequence[Baseline], Z: np.ndarray, y: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the losses of F's re-fits on one target ``y (n,)``, the null control, as columns.

    NaN for a clone of an F that came fitted where it refuses the rows.
    """
    columns = {}
    for number, refit in enumerate(refits):
        losses = np.full(len(y), np.nan)
        try:
            # most models refuse to predict no rows at all
            if len(y):
                losses = row_losses.row_loss(y, refit.predict(Z))
        except ModelError:
            # a model fitted here reads whatever its encoder gives: its error is a real one
            if not refit.comes_fitted:
                raise
        columns[f"null_{number}"] = losses
    return columns


def separate_sides(
    train: Rows,
    test: Rows,
    *,
    real: Sequence[pd.DataFrame],
    tested: Sequence[pd.DataFrame],
    fit: Callable[[pd.DataFrame, pd.DataFrame], FittedRows],
) -> tuple[Part, dict[str, int]]:
    """Leave out the rows of ``_hard`` that would stand on both its sides, or twice.

    Real rows can have the same features on both sides of a fold. And the test rows of ``_hard`` are
    fitted to its own training rows, so that two of them can become alike there, or like a
    training row, that are not so anywhere else. A test row that is real always stays.

    Parameters
    ----------
    train, test : Rows
        Hard rows of either side; ``origin`` in their provenance tells real from made.
    real : sequence of DataFrame
        Features of all real rows, as they came and as they are written.
    tested : sequence of DataFrame
        The same of the fold's test rows alone.
    fit : callable
        ``(training features, test features)`` -> the latter as AMLB can read them beside the
        former.

    Returns
    -------
    pair : Part
        Its test rows are not yet fitted to its training rows.
    left_out : dict of str to int
        ``train_real``, ``train_made``: training rows with the features of a test row;
        ``test_made``: made test rows that repeat another row as they are written there.
    """
    n_train = len(train)
    n_made = int(is_made(train).sum())
    fitted = FittedRows(test.features, [], np.zeros(0, dtype=int))
    # what is known may become less with each training row that goes, and the fitted test rows
    # others, so that new clashes come up: look again until there are none
    while len(train):
        fitted = fit(train.features, test.features)
        train_numbers, *test_numbers = number_rows(
            train.features, *tested, test.features, fitted.features
        )
        clashes = np.isin(train_numbers, np.concatenate(test_numbers))
        if not clashes.any():
            break
        train = train.take(~clashes)
    made_left_out = n_made - int(is_made(train).sum())
    repeats = _repeated_made_rows(test, fitted, real)
    if repeats.any():
        test = test.take(~repeats)
    left_out = {
        "train_made": made_left_out,
        "train_real": n_train - len(train) - made_left_out,
        "test_made": int(repeats.sum()),
    }
    return Part(test, train), left_out


def _repeated_made_rows(
    test: Rows, fitted: FittedRows, real: Sequence[pd.DataFrame]
) -> np.ndarray:
    """Return which made test rows repeat another row once cells of theirs were replaced."""
    changed_rows = [row for row, _ in fitted.cells]
    has_new_cells = np.isin(np.arange(len(test)), changed_rows)
    numbers, *real_numbers = number_rows(
        fitted.features, *real, fitted.features[~is_made(test)]
    )
    # rows that stand as they were made come first, so that it is the changed ones that repeat
    order = np.lexsort([np.arange(len(test)), has_new_cells])
    repeats_test = np.zeros(len(test), dtype=bool)
    repeats_test[order] = repeats_earlier(numbers[order])
    repeats_real = np.isin(numbers, np.concatenate(real_numbers))
    return is_made(test) & has_new_cells & (repeats_test | repeats_real)
