"""The answers as they come in, their checks, and the one to quote."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from amlb_ext.core.rng import derive_seed, stream
from amlb_ext.estimate import checks, intervals
from amlb_ext.estimate.generated import Generator
from amlb_ext.estimate.inputs import Inputs
from amlb_ext.estimate.osyn_run import OsynAsked, OsynRun, run_osyn
from amlb_ext.estimate.partition import independent_cells, partition_bound, partition_estimate
from amlb_ext.estimate.powered import ppi, surrogate
from amlb_ext.estimate.report import Report
from amlb_ext.estimate.results import FAILED, ErrorEstimate, without
from amlb_ext.estimate.strata import stratified
from amlb_ext.stats.support import NEIGHBOURS, Support, check_support

#: Rows of each class from which the stratified interval of a bounded loss held (docs/coverage.md).
LARGE_CLASS = 200
#: What may be quoted at all; prediction-powered intervals stand beside, being a little short.
QUOTABLE = ("stratified", "wilson", "t", "empirical_bernstein")
#: Most rows whose place is looked up by the support check, and cells of the sound bound.
SUPPORT_ROWS, CELLS = 10_000, 10


class Work:
    """The answers as they come; findings about S decide in the end which of them to quote."""

    def __init__(self, inputs: Inputs, level: float, seed: int) -> None:
        self.inputs, self.level, self.seed = inputs, level, seed
        self.rows: list[ErrorEstimate] = []
        self.by_label: list[checks.Finding] = []  # was S drawn by its labels?
        self.iid: list[checks.Finding] = []  # or otherwise not at random?
        self.truth: list[checks.Finding] = []
        self.support: dict[str, Support] = {}
        self.osyn: OsynRun | None = None
        self.far: np.ndarray | None = None
        self.by_class = False
        self.metric = inputs.metric(inputs.Z)

    def from_labels(self) -> None:
        """Answer from the labelled rows alone."""
        i, level = self.inputs, self.level
        bound = i.loss.bound
        if i.priors is not None:
            shares = checks.class_shares(i.y, i.priors)
            self.by_label.append(shares)
            self.by_class = shares.refuted
            self.rows.append(
                stratified(i.losses, i.y, i.priors, level, bound, i.loss.binary, list(i.labels))
            )
        if i.labels and i.train is not None:
            self.by_label.append(checks.absent_classes(i.y, i.train[1], i.labels))
        if i.loss.binary:
            self.rows += [intervals.wilson(i.losses, level)]
            self.rows += [intervals.clopper_pearson(i.losses, level)]
        self.rows += [intervals.t_interval(i.losses, level, bound)]
        self.rows += [intervals.empirical_bernstein(i.losses, level, bound)]
        seed = derive_seed(self.seed, "estimate", "bca") % 2**31
        self.rows += [intervals.bca(i.losses, level, bound, seed=seed)]

    def with_unlabelled(self, path: Path) -> None:
        """Answer with the help of real rows without labels."""
        i = self.inputs
        if not i.searchable:
            self.rows.append(self._nothing("ppi", "a file of predictions has none of these rows"))
            return
        Z = i.read_unlabelled(path)
        f = i.predict(Z)
        self.far = i.metric(Z)
        found = self._support("unlabelled", self.far, f.argmax(axis=1) if i.labels else None)
        self.iid += [found, checks.same_predictions(i.f, f)]
        made = surrogate(i.loss, i.losses, i.f, f, i.Z, Z, self.seed)
        if made is None:
            why = "too few labelled rows to learn which losses to expect"
            self.rows.append(self._nothing("ppi", why))
        else:
            self.rows.append(ppi(i.losses, made, self.level, i.loss.bound))
        self._partition(self.far, real=True)

    def with_generated(self, source: Generator, settings: OsynAsked, explore: bool) -> None:
        """Answer with generated rows; all of it takes the generator for the truth."""
        i = self.inputs
        Z, y = next(source.encoded())
        codes = y.astype(int) if i.labels else None
        self.truth.append(self._support("generated", i.metric(Z), codes))
        self.osyn = run_osyn(
            source.stream, self.metric, i.y, i.losses, i.loss, settings, self.seed, explore
        )
        synthetic = self.osyn.synthetic(self.level)
        if synthetic is not None:
            self.rows.append(synthetic)
            plain = intervals.empirical_bernstein(i.losses, self.level, i.loss.bound)
            if plain.has_interval and not plain.low <= synthetic.point <= plain.high:
                self.truth.append(
                    checks.Finding(
                        True,
                        f"the model loses {synthetic.point:.3g} on generated rows, outside the "
                        f"{self.level:.0%} interval {plain.low:.3g} to {plain.high:.3g} of the "
                        "labelled ones",
                    )
                )
        self.rows += self.osyn.rows()
        if self.far is None:
            self._partition(i.metric(Z), real=False)

    def _partition(self, others: np.ndarray, real: bool) -> None:
        """Add the sound bound: cells from one half of the other rows, masses from the second."""
        i = self.inputs
        rng = stream(self.seed, "estimate", "cells")
        half = len(others) // 2
        others = others[rng.permutation(len(others))]
        cells = independent_cells(others[:half], min(CELLS, max(1, half)), rng)
        masses = np.bincount(cells.assign(others[half:]), minlength=cells.n_regions)
        counted = len(others) - half if real else None
        found = partition_bound(
            i.losses,
            cells.assign(self.metric),
            masses,
            1 - self.level,
            i.loss.bound,
            n_masses=counted,
        )
        row = partition_estimate(found)
        if not real:
            row = dataclasses.replace(row, assumes=f"the generator is the truth; {row.assumes}")
        self.rows.append(row)

    def _support(self, whose: str, M: np.ndarray, labels: np.ndarray | None) -> checks.Finding:
        rng = stream(self.seed, "estimate", "support", whose)
        some = np.sort(rng.permutation(len(M))[:SUPPORT_ROWS])
        found = check_support(
            self.metric,
            M[some],
            k=min(NEIGHBOURS, max(1, len(self.metric) // 5)),
            labels=None if labels is None else labels[some],
            classes=list(self.inputs.labels) or None,
            columns=self.inputs.metric_names(),
        )
        self.support[whose] = found
        return checks.of_support(found, whose)

    def _nothing(self, name: str, why: str) -> ErrorEstimate:
        return without(name, self.level, len(self.inputs.y), "", why)

    def report(self, model: str, data: str) -> Report:
        """Check every row's assumption, choose the one to quote, and put it first."""
        i = self.inputs
        rows = [self._checked(row) for row in self.rows]
        quoted = _choose(rows, _preferred(i, self.by_class))
        rows = [dataclasses.replace(row, recommended=row.name == quoted) for row in rows]
        rows.sort(key=lambda row: not row.recommended)
        refused = "" if quoted else _why(rows)
        return Report(
            model,
            data,
            i.loss.name,
            i.loss.unit,
            i.loss.bound,
            self.level,
            len(i.y),
            tuple(rows),
            refused,
            self.support,
            self.osyn,
            tuple(i.notes),
        )

    def _checked(self, row: ErrorEstimate) -> ErrorEstimate:
        if row.check == FAILED or row.name == "stratified" or not row.assumes:
            return row
        findings = [*self.by_label, *self.iid]
        if row.name == "synthetic":
            findings = self.truth
        elif row.name == "partition":
            findings = [*self.by_label, *(self.truth if "generator" in row.assumes else [])]
        elif row.name.startswith("osyn"):
            findings = [*findings, *self.truth]
        found = checks.together(findings)
        if found is None:
            return row
        reason = "; ".join(text for text in (row.reason, found.text) if text)
        return row.checked(not found.refuted, reason)


def _preferred(inputs: Inputs, by_class: bool) -> tuple[str, ...]:
    """Return what to quote, best first, for rows drawn class by class or independently."""
    if by_class:
        counts = np.bincount(inputs.y.astype(int), minlength=len(inputs.labels))
        assert inputs.priors is not None
        enough = inputs.loss.binary or counts[inputs.priors > 0].min() >= LARGE_CLASS
        return ("stratified",) if enough else ()
    if inputs.loss.binary:
        return ("wilson",)
    safe = ("empirical_bernstein",)
    return ("t", *safe) if intervals.nearly_normal(inputs.losses) else safe


def _choose(rows: Sequence[ErrorEstimate], preferred: Sequence[str]) -> str:
    by_name = {row.name: row for row in rows}
    for name in preferred:
        row = by_name.get(name)
        if row is not None and row.has_interval and row.check != FAILED:
            return name
    return ""


def _why(rows: Sequence[ErrorEstimate]) -> str:
    """Return the reasons of those that might have been quoted, each once."""
    texts = [
        part
        for row in rows
        if row.name in QUOTABLE and row.reason
        for part in row.reason.split("; ")
    ]
    return "; ".join(dict.fromkeys(texts)) or "no estimator gives an interval on these rows"
