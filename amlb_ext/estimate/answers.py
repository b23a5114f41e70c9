"""All answers on the rows at hand, the checks of what they assume, and the report of both."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.estimate import checks
from amlb_ext.estimate.advice import (
    advise,
    choose_preference,
    choose_quoted,
    describe_assumption,
    why_none_quoted,
)
from amlb_ext.estimate.drawing import (
    About,
    Against,
    Comparison,
    compare_classes,
    compare_columns,
    compare_predictions,
    compare_second_model,
    compare_targets,
    level_of_each,
    like_priors,
    same_shares,
)
from amlb_ext.estimate.generated import Generator
from amlb_ext.estimate.inputs import EstimateInputs
from amlb_ext.estimate.osyn.run import OsynAsked, OsynRun, run_osyn
from amlb_ext.estimate.partition import (
    independent_cells,
    partition_bound,
    partition_estimate,
)
from amlb_ext.stats import bounded_mean
from amlb_ext.stats.bounded_loss import BoundedLoss
from amlb_ext.stats.error_estimate import FAILED, ErrorEstimate, no_estimate
from amlb_ext.stats.prediction_powered import prediction_powered_error
from amlb_ext.stats.stratified_mean import stratified_interval
from amlb_ext.stats.support import NEIGHBOURS, Support, check_support
from amlb_ext.stats.surrogate import choose_surrogate

#: Most rows whose place is looked up by the support check, and cells of the sound bound.
SUPPORT_ROWS, CELLS = 10_000, 10


class Evidence(Enum):
    """What may refute the assumption of an answer."""

    #: How often the classes, or the targets, occur among the labelled rows: priors put it right.
    LABELS = "labels"
    #: All else about how the labelled rows were drawn.
    FEATURES = "features"
    #: Whether generated rows are distributed as real ones.
    GENERATOR = "generator"


#: The answers from labelled rows assume that these were drawn at random.
DRAW = (Evidence.LABELS, Evidence.FEATURES)


@dataclass(frozen=True)
class Answer:
    """An estimator's answer, and what may refute its assumption; nothing for an empty answer."""

    estimate: ErrorEstimate
    evidence: tuple[Evidence, ...] = DRAW


class EstimateAnswers:
    """The answers as they come; findings about S decide in the end which of them to quote."""

    def __init__(self, inputs: EstimateInputs, level: float, seed: int) -> None:
        self.inputs, self.level, self.seed = inputs, level, seed
        self.answers: list[Answer] = []
        self.by_label: list[checks.Finding] = []  # was S drawn by its labels?
        self.comparisons: list[Comparison] = []  # was it drawn as other rows were?
        self.near: dict[Against, checks.Finding] = {}  # and do these lie where S does?
        self.truth: list[checks.Finding] = []
        self.support: dict[str, Support] = {}
        self.osyn: OsynRun | None = None
        self.far: np.ndarray | None = None
        self.by_class = False
        self.lacks_class = False
        self.metric = inputs.metric(inputs.Z)

    def from_labels(self) -> None:
        """Answer from the labelled rows alone, and compare them with priors and training rows."""
        i = self.inputs
        if i.priors is not None:
            shares = self._against_priors()
            self.by_label.append(shares)
            self.by_class = shares.refuted
        if i.train is not None:
            self._compare_training_rows(*i.train)
        self._answer()
        seed = derive_seed(self.seed, "estimate", "bca") % 2**31
        bootstrap = bounded_mean.bca_interval(
            i.losses, self.level, i.loss.bound, seed=seed
        )
        self.answers.append(Answer(bootstrap))

    def with_loss(self, loss: BoundedLoss) -> EstimateAnswers:
        """Return the answers from the labelled rows for another loss; no check depends on it.

        The bootstrap is left out: it is slow, and never quoted.
        """
        losses = loss(self.inputs.y, self.inputs.f)
        other = copy.copy(self)
        other.inputs = dataclasses.replace(self.inputs, loss=loss, losses=losses)
        other.answers = []
        other._answer()
        return other

    def _answer(self) -> None:
        i, level, bound = self.inputs, self.level, self.inputs.loss.bound
        if i.priors is not None:
            by_class = stratified_interval(
                i.losses,
                i.y,
                i.priors,
                level=level,
                bound=bound,
                binary=i.loss.binary,
                names=list(i.labels),
                prior_rows=len(i.train[1]) if i.priors_of_train and i.train else None,
            )
            # The priors put right how often the classes were drawn.
            self.answers.append(Answer(by_class, (Evidence.FEATURES,)))
        estimates = []
        if i.loss.binary:
            estimates.append(bounded_mean.wilson_interval(i.losses, level))
            estimates.append(bounded_mean.clopper_pearson(i.losses, level))
        estimates.append(bounded_mean.t_interval(i.losses, level, bound))
        if not i.loss.binary:
            order = derive_seed(self.seed, "estimate", "betting") % 2**31
            estimates.append(bounded_mean.hall_interval(i.losses, level, bound))
            estimates.append(
                bounded_mean.betting_interval(i.losses, level, bound, seed=order)
            )
        estimates.append(bounded_mean.empirical_bernstein(i.losses, level, bound))
        self.answers += [Answer(estimate) for estimate in estimates]

    def _against_priors(self) -> checks.Finding:
        """Compare the labelled rows' classes with the priors, which may be counts themselves."""
        i = self.inputs
        assert i.priors is not None
        if not (i.priors_of_train and i.train is not None):
            return checks.class_shares(i.y, i.priors)
        return compare_classes(i.y, i.train[1], i.labels).finding(checks.REFUTED)

    def _compare_training_rows(self, Z: np.ndarray, y: np.ndarray) -> None:
        """Ask whether the labelled rows were drawn as the training rows were.

        Columns, confidence and errors are compared given the class, so that known priors can put
        right what the draw by class did.
        """
        i = self.inputs
        rng = random_stream(self.seed, "estimate", "same shares")
        kept = np.arange(len(y))
        if i.labels:
            absent = checks.absent_classes(i.y, y, i.labels)
            self.lacks_class = absent.refuted and not i.drawn_at_random
            if self.lacks_class:
                self.by_label.append(absent)
            elif i.priors is None:
                self.comparisons.append(compare_classes(i.y, y, i.labels))
            kept = same_shares(y, i.y, rng)
        else:
            self.comparisons.append(compare_targets(i.y, i.units(y)))
        if not len(kept):
            return
        self._compare_columns(i.Z, Z[kept], "training rows")
        units = y if i.labels else i.units(y)
        self.comparisons += compare_second_model(
            i.Z, i.y, Z, units, is_class=bool(i.labels), seed=self.seed
        )
        if i.priors is None or (i.priors_of_train and not self.by_class):
            codes = y if i.labels else None
            found = self._support("training", i.metric(Z), codes, self.metric)
            self.near["training rows"] = found

    def _compare_columns(
        self, Z: np.ndarray, Z_other: np.ndarray, against: Against
    ) -> None:
        encoder = self.inputs.encoder
        found = compare_columns(
            Z, Z_other, encoder.names_, encoder.n_categorical_, against
        )
        self.comparisons.append(found)

    def compare_unlabelled(self, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
        """Compare the labelled rows with real rows without labels.

        Returns
        -------
        tuple
            The other rows, encoded, and the model's predictions on them; None for a file of
            predictions, which has none.
        """
        i = self.inputs
        Z = i.read_unlabelled(path)
        self.far = i.metric(Z)
        f = i.predict(Z) if i.searchable else None
        # Of rows drawn class by class as many are compared as have the shares of the population.
        kept = np.arange(len(i.y))
        if self.by_class and i.priors is not None:
            kept = like_priors(
                i.y, i.priors, random_stream(self.seed, "estimate", "like priors")
            )
        labels = f.argmax(axis=1) if f is not None and i.labels else None
        found = self._support("unlabelled", self.far, labels, self.metric[kept])
        self.near["rows without labels"] = found
        self._compare_columns(i.Z[kept], Z, "rows without labels")
        if f is not None:
            self.comparisons += compare_predictions(i.f[kept], f)
        return Z, f

    def with_unlabelled(self, path: Path) -> None:
        """Answer with the help of real rows without labels."""
        i = self.inputs
        Z, f = self.compare_unlabelled(path)
        self.answers.append(self._prediction_powered(Z, f))
        self._partition(i.metric(Z), real=True)

    def _prediction_powered(self, Z: np.ndarray, f: np.ndarray | None) -> Answer:
        """Return the prediction-powered answer; ``f`` is None for a file of predictions."""
        i = self.inputs
        reason = "a file of predictions has none of these rows"
        if f is not None:
            expected = choose_surrogate(
                i.loss, i.losses, i.f, f, X=i.Z, X_unlabelled=Z, seed=self.seed
            )
            if expected is not None:
                return Answer(
                    prediction_powered_error(
                        i.losses, expected, self.level, i.loss.bound
                    )
                )
            reason = "too few labelled rows to learn which losses to expect"
        empty = no_estimate(
            "ppi", level=self.level, n=len(i.y), assumes="", reason=reason
        )
        return Answer(empty, evidence=())

    def with_generated(
        self, source: Generator, settings: OsynAsked, explore: bool
    ) -> None:
        """Answer with generated rows; all of it takes the generator for the truth."""
        i = self.inputs
        Z, y = next(source.encoded())
        codes = y.astype(int) if i.labels else None
        self.truth.append(self._support("generated", i.metric(Z), codes, self.metric))
        self.osyn = run_osyn(
            source.stream,
            self.metric,
            i.y,
            i.losses,
            loss=i.loss,
            asked=settings,
            seed=self.seed,
            sweep=explore,
        )
        synthetic = self.osyn.synthetic(self.level)
        if synthetic is not None:
            self.answers.append(Answer(synthetic, (Evidence.GENERATOR,)))
            self._compare_generated_loss(synthetic.point)
        for bound in self.osyn.rows():
            self.answers.append(Answer(bound, (*DRAW, Evidence.GENERATOR)))
        if self.far is None:
            self._partition(i.metric(Z), real=False)

    def _compare_generated_loss(self, loss: float) -> None:
        """Hold the mean loss on generated rows against a sound interval of the labelled ones."""
        i = self.inputs
        plain = bounded_mean.empirical_bernstein(i.losses, self.level, i.loss.bound)
        if not plain.has_interval or plain.low <= loss <= plain.high:
            return
        text = (
            f"the model loses {loss:.3g} on generated rows, outside the {self.level:.0%} interval "
            f"{plain.low:.3g} to {plain.high:.3g} of the labelled ones"
        )
        self.truth.append(checks.Finding(True, text))

    def _partition(self, others: np.ndarray, real: bool) -> None:
        """Add the sound bound: cells from one half of the other rows, masses from the second."""
        i = self.inputs
        rng = random_stream(self.seed, "estimate", "cells")
        half = len(others) // 2
        others = others[rng.permutation(len(others))]
        cells = independent_cells(others[:half], min(CELLS, max(1, half)), rng)
        masses = np.bincount(cells.assign(others[half:]), minlength=cells.n_regions)
        result = partition_bound(
            i.losses,
            cells.assign(self.metric),
            masses,
            delta=1 - self.level,
            C_h=i.loss.bound,
            n_masses=len(others) - half if real else None,
        )
        estimate = partition_estimate(result)
        # Cells may be sampled unequally, so how the features were drawn refutes nothing here.
        evidence: tuple[Evidence, ...] = (Evidence.LABELS,)
        if not real:
            assumes = f"the generator is the truth; {estimate.assumes}"
            estimate = dataclasses.replace(estimate, assumes=assumes)
            evidence = (Evidence.LABELS, Evidence.GENERATOR)
        self.answers.append(Answer(estimate, evidence))

    def _support(
        self, whose: str, M: np.ndarray, labels: np.ndarray | None, metric: np.ndarray
    ) -> checks.Finding:
        rng = random_stream(self.seed, "estimate", "support", whose)
        some = np.sort(rng.permutation(len(M))[:SUPPORT_ROWS])
        found = check_support(
            metric,
            M[some],
            k=min(NEIGHBOURS, max(1, len(metric) // 5)),
            labels=None if labels is None else labels[some],
            classes=list(self.inputs.labels) or None,
            columns=self.inputs.metric_names(),
        )
        self.support[whose] = found
        return checks.support_finding(found, whose)

    def report(self, model: str, data: str) -> EstimateReport:
        """Check every row's assumption, choose the one to quote, and put it first."""
        i = self.inputs
        judged = self._judged()
        preference = choose_preference(i, self.by_class)
        rows = [self._checked(answer, judged) for answer in self.answers]
        quoted = choose_quoted(rows, preference)
        rows = [
            dataclasses.replace(row, recommended=row.name == quoted) for row in rows
        ]
        rows.sort(key=lambda row: not row.recommended)
        refused, advice = "", ""
        if not quoted:
            refused = why_none_quoted(rows, preference)
            advice = preference.advice or advise(
                [c for c, finding in judged.comparisons if finding.refuted],
                lies_elsewhere=[
                    against for against, f in judged.near.items() if f.refuted
                ],
                lacks_class=self.lacks_class,
                has_classes=bool(i.labels),
                has_priors=i.priors is not None,
            )
        approximate = "hall" if quoted == "betting" else ""
        if not any(row.name == approximate and row.has_interval for row in rows):
            approximate = ""
        return EstimateReport(
            model=model,
            data=data,
            loss=i.loss.name,
            unit=i.loss.unit,
            bound=i.loss.bound,
            level=self.level,
            n=len(i.y),
            rows=tuple(rows),
            refused=refused,
            support=self.support,
            osyn=self.osyn,
            notes=(*i.notes, *judged.overruled),
            advice=advice,
            assumption=describe_assumption(
                quoted, self.comparisons, overruled=bool(judged.overruled)
            ),
            approximate=approximate,
            comparisons=tuple(self.comparisons),
        )

    def _judged(self) -> Judged:
        """Return what the comparisons say at the level that they share.

        What the user vouches for is told in a note instead.
        """
        level = level_of_each(self.comparisons)
        vouched: Sequence[Against] = (
            ("training rows",) if self.inputs.drawn_at_random else ()
        )
        overruled = []
        comparisons = []
        for comparison in self.comparisons:
            finding = comparison.finding(level)
            if comparison.against not in vouched:
                comparisons.append((comparison, finding))
            elif finding.refuted:
                overruled.append(finding.text)
        near: dict[Against, checks.Finding] = {}
        for against, finding in self.near.items():
            if against not in vouched:
                near[against] = finding
            elif finding.refuted:
                overruled.append(finding.text)
        return Judged(
            comparisons=comparisons,
            near=near,
            overruled=[f"overruled by --drawn-at-random: {text}" for text in overruled],
        )

    def _checked(self, answer: Answer, judged: Judged) -> ErrorEstimate:
        """Return the estimate with the outcome of the checks of its assumption."""
        estimate = answer.estimate
        if estimate.check == FAILED:
            return estimate
        findings: list[checks.Finding] = []
        if Evidence.LABELS in answer.evidence:
            findings += [*self.by_label, *judged.about("labels")]
        if Evidence.FEATURES in answer.evidence:
            findings += [*judged.about("features"), *judged.near.values()]
        if Evidence.GENERATOR in answer.evidence:
            findings += self.truth
        joint = checks.join_findings(findings)
        if joint is None:
            return estimate
        reason = "; ".join(text for text in (estimate.reason, joint.text) if text)
        return estimate.with_check(not joint.refuted, reason)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Comparisons and support checks with what they say, and what the user overruled."""

    comparisons: list[tuple[Comparison, checks.Finding]]
    near: dict[Against, checks.Finding]
    overruled: list[str]

    def about(self, what: About) -> list[checks.Finding]:
        """Return the findings of comparisons about labels, or about features."""
        return [finding for c, finding in self.comparisons if c.about == what]


@dataclass(frozen=True, kw_only=True)
class EstimateReport:
    """All answers.

    Attributes
    ----------
    model, data, loss, unit : str
    bound, level : float
    n : int
    rows : tuple of ErrorEstimate
        The recommended one first.
    refused : str
        Why none is recommended; empty when one is.
    support : dict of str to Support
        ``unlabelled``, ``generated``.
    osyn : OsynRun, optional
    notes : tuple of str
    advice : str
        What to do where none is recommended.
    assumption : str
        What the recommended one assumes of how the rows were drawn, and what that was held
        against.
    approximate : str
        Name of a narrower interval to look at beside the recommended one; empty for none.
    comparisons : tuple of Comparison
        Of labelled rows with others.
    """

    model: str
    data: str
    loss: str
    unit: str
    bound: float
    level: float
    n: int
    rows: tuple[ErrorEstimate, ...]
    refused: str = ""
    support: dict[str, Support] = field(default_factory=dict)
    osyn: OsynRun | None = None
    notes: tuple[str, ...] = ()
    advice: str = ""
    assumption: str = ""
    approximate: str = ""
    comparisons: tuple[Comparison, ...] = ()

    @property
    def recommended(self) -> ErrorEstimate | None:
        """The row to quote."""
        return next((row for row in self.rows if row.recommended), None)

    def table(self) -> pd.DataFrame:
        """Return a row per estimator."""
        return pd.DataFrame([dataclasses.asdict(row) for row in self.rows])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; numbers that there are not are null."""
        return {
            "model": self.model,
            "data": self.data,
            "loss": {"name": self.loss, "unit": self.unit, "bound": self.bound},
            "level": self.level,
            "labelled_rows": self.n,
            "recommended": None if self.recommended is None else self.recommended.name,
            "refused": self.refused,
            "advice": self.advice,
            "assumption": self.assumption,
            "approximate": self.approximate or None,
            "comparisons": [
                {"what": c.what, "against": c.against, "p": c.p}
                for c in self.comparisons
            ],
            "level_of_each_comparison": level_of_each(self.comparisons),
            "estimates": [
                {
                    k: None if _is_nan(v) else v
                    for k, v in dataclasses.asdict(row).items()
                }
                for row in self.rows
            ],
            "support": {
                name: {
                    "share_inside": None if _is_nan(s.share_inside) else s.share_inside,
                    "own": None
                    if _is_nan(s.labelled_share_inside)
                    else s.labelled_share_inside,
                    "k": s.k,
                    "refused": s.refused,
                    "lacking": list(s.lacking),
                    "reason": s.reason,
                }
                for name, s in self.support.items()
            },
            "osyn": None if self.osyn is None else self.osyn.to_json(),
            "notes": list(self.notes),
        }


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
