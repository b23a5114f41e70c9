"""All answers on the rows at hand, the checks of their assumptions, and the report of both."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_level, html_view
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.estimate.advice import (
    advise,
    choose_preference,
    choose_quoted,
    describe_assumption,
    headline,
    report_text,
    why_none_quoted,
)
from amlb_ext.estimate.drawing import (
    REFUTED,
    About,
    Against,
    Comparison,
    Finding,
    absent_classes,
    class_shares,
    compare_classes,
    compare_columns,
    compare_predictions,
    compare_second_model,
    compare_targets,
    join_findings,
    level_of_each,
    like_priors,
    same_shares,
)
from amlb_ext.estimate.inputs import EstimateInputs, Generator, losses_by
from amlb_ext.estimate.osyn.run import OsynChoices, OsynRun, run_osyn
from amlb_ext.estimate.partition import (
    independent_cells,
    partition_bound,
)
from amlb_ext.sources.table import Table
from amlb_ext.stats import bounded_mean
from amlb_ext.stats.bounded_loss import BoundedLoss
from amlb_ext.stats.bounded_mean import stratified_interval
from amlb_ext.stats.error_estimate import (
    FAILED,
    ErrorEstimate,
    median_interval,
)
from amlb_ext.stats.prediction_powered import choose_surrogate, prediction_powered_error
from amlb_ext.stats.support import NEIGHBOURS, Support, check_support

#: Largest number of rows whose place the support check looks up.
SUPPORT_ROWS = 10_000
#: With fewer labelled rows nothing is refused by their place: of sound random samples of 20, 50 and
#: 100 rows 15, 5 and 4 in 120 were, and no study shows that more bad ones were caught.
FEWEST_PLACED = 100
#: Number of cells of the sound bound; few, so that each gets labelled rows.
CELLS = 10


class Evidence(Enum):
    """What may refute the assumption of an answer."""

    #: How often the classes, or the targets, occur among the labelled rows: priors correct that.
    LABELS = "labels"
    #: Everything else about how the labelled rows were drawn.
    FEATURES = "features"
    #: Whether generated rows are distributed as real ones.
    GENERATOR = "generator"


#: Answers from labelled rows assume that these were drawn at random.
DRAW = (Evidence.LABELS, Evidence.FEATURES)


@dataclass(frozen=True)
class Answer:
    """The answer of an estimator, and what may refute its assumption (nothing if it is empty)."""

    estimate: ErrorEstimate
    evidence: tuple[Evidence, ...] = DRAW


class EstimateAnswers:
    """Collects answers and findings; in the end the findings decide which answers to quote.

    S are the labelled rows.
    """

    def __init__(self, inputs: EstimateInputs, level: float, seed: int) -> None:
        self.inputs = inputs
        self.level = level
        self.seed = seed
        self.answers: list[Answer] = []
        #: Was S drawn by its labels?
        self.label_findings: list[Finding] = []
        #: Was S drawn as other rows were?
        self.comparisons: list[Comparison] = []
        #: Do these other rows lie where S does?
        self.support_findings: dict[Against, Finding] = {}
        #: Are generated rows like real ones?
        self.generator_findings: list[Finding] = []
        self.support: dict[str, Support] = {}
        self.osyn: OsynRun | None = None
        #: Rows without labels in metric form.
        self.unlabelled_metric: np.ndarray | None = None
        #: Whether the shares of the classes in S refute the priors.
        self.drawn_by_class = False
        #: Whether S lacks a class of the training rows.
        self.lacks_class = False
        self.metric = inputs.metric(inputs.Z)

    def from_labels(self) -> None:
        """Answer from the labelled rows alone, and compare them with priors and training rows."""
        inputs = self.inputs
        # a balanced error is the same, however often each class was drawn
        if inputs.priors is not None and not inputs.loss.is_balanced:
            if inputs.priors_of_train and inputs.train is not None:
                # the priors are counts
                _, y_train = inputs.train
                comparison = compare_classes(inputs.y, y_train, inputs.labels)
                shares = comparison.finding(REFUTED)
            else:
                shares = class_shares(inputs.y, inputs.priors)
            self.label_findings.append(shares)
            self.drawn_by_class = shares.refuted
        if inputs.train is not None:
            self._compare_training_rows(*inputs.train)
        self._add_label_answers()
        if inputs.loss.is_balanced:
            return
        seed = derive_int_seed(self.seed, "estimate", "bca")
        # Never quoted: it stands in the table beside the others.
        bootstrap = bounded_mean.bca_interval(
            inputs.losses, self.level, inputs.loss.bound, seed=seed
        )
        self.answers.append(Answer(bootstrap))

    def with_loss(self, loss: BoundedLoss) -> EstimateAnswers:
        """Return the answers from the labelled rows for another loss; no check depends on it.

        The bootstrap is left out: it is slow, and never quoted.
        """
        inputs = self.inputs
        losses = losses_by(loss, inputs.y, inputs.f, inputs.decided)
        # A shallow copy shares the findings, and gets inputs and answers of its own.
        other = copy.copy(self)
        other.inputs = dataclasses.replace(self.inputs, loss=loss, losses=losses)
        other.answers = []
        other._add_label_answers()
        return other

    def _add_label_answers(self) -> None:
        """Add every interval from the labelled rows, with priors the stratified one first."""
        if self.inputs.loss.is_balanced:
            estimate = bounded_mean.balanced_interval(
                self.inputs.losses,
                self.inputs.y,
                level=self.level,
                names=list(self.inputs.labels),
            )
            # the others are of the error in which rows count alike
            self.answers.append(Answer(estimate, (Evidence.FEATURES,)))
            return
        if self.inputs.priors is not None:
            self.answers.append(self._stratified_answer(self.inputs.priors))
        losses = self.inputs.losses
        level = self.level
        bound = self.inputs.loss.bound
        t = bounded_mean.t_interval(losses, level, bound)
        bernstein = bounded_mean.empirical_bernstein(losses, level, bound)
        if self.inputs.loss.binary:
            wilson = bounded_mean.wilson_interval(losses, level)
            exact = bounded_mean.clopper_pearson(losses, level)
            estimates = [wilson, exact, t, bernstein]
        elif self.inputs.loss.costs is not None:
            cost = bounded_mean.cost_interval(losses, self.inputs.loss.costs, level)
            estimates = [cost, t, bernstein]
        else:
            # The bet depends on the order of the rows, which must not be that of the file.
            order = derive_int_seed(self.seed, "estimate", "betting")
            hall = bounded_mean.hall_interval(losses, level, bound)
            betting = bounded_mean.betting_interval(losses, level, bound, seed=order)
            estimates = [t, hall, betting, bernstein]
        self.answers += [Answer(estimate) for estimate in estimates]

    def _stratified_answer(self, priors: np.ndarray) -> Answer:
        """Return the interval that weights the classes by their shares in the population."""
        inputs = self.inputs
        # Shares that were counted on training rows have an error of their own.
        n_counted = None
        if inputs.priors_of_train and inputs.train is not None:
            n_counted = len(inputs.train[1])
        estimate = stratified_interval(
            inputs.losses,
            inputs.y,
            priors,
            level=self.level,
            bound=inputs.loss.bound,
            binary=inputs.loss.binary,
            names=list(inputs.labels),
            prior_rows=n_counted,
            costs=None if inputs.loss.binary else inputs.loss.costs,
        )
        # The priors correct how often the classes were drawn.
        return Answer(estimate, (Evidence.FEATURES,))

    def _compare_training_rows(self, Z: np.ndarray, y: np.ndarray) -> None:
        """Check whether the labelled rows were drawn as the training rows were.

        Columns, confidence and errors are compared given the class, so that known priors can
        correct a draw by class.
        """
        inputs = self.inputs
        rng = random_stream(self.seed, "estimate", "same shares")
        is_class = bool(inputs.labels)
        kept = np.arange(len(y))
        if is_class:
            absent = absent_classes(inputs.y, y, inputs.labels)
            self.lacks_class = absent.refuted and not inputs.drawn_at_random
            if self.lacks_class:
                self.label_findings.append(absent)
            elif inputs.priors is None:
                self.comparisons.append(compare_classes(inputs.y, y, inputs.labels))
            kept = same_shares(y, inputs.y, rng)
        else:
            self.comparisons.append(compare_targets(inputs.y, inputs.units(y)))
        # no class in common: there is nothing to compare within classes
        if not len(kept):
            return
        self._compare_columns(inputs.Z, Z[kept], "training rows")
        self.comparisons += compare_second_model(
            inputs.Z,
            inputs.y,
            Z_train=Z,
            y_train=inputs.units(y),
            is_class=is_class,
            seed=self.seed,
        )
        # Under priors of another population the training rows need not lie where S does.
        counts_are_shared = inputs.priors_of_train and not self.drawn_by_class
        if inputs.priors is None or counts_are_shared:
            codes = y if is_class else None
            finding = self._check_support(
                "training", inputs.metric(Z), labels=codes, metric=self.metric
            )
            self.support_findings["training rows"] = finding

    def _compare_columns(
        self, Z: np.ndarray, Z_other: np.ndarray, against: Against
    ) -> None:
        encoder = self.inputs.encoder
        self.comparisons.append(
            compare_columns(
                Z,
                Z_other,
                names=encoder.names_,
                n_categorical=encoder.n_categorical_,
                against=against,
            )
        )

    def compare_unlabelled(
        self, given: Path | Table
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Compare the labelled rows with real rows without labels.

        Returns
        -------
        tuple
            The other rows, encoded, and the model's predictions on them; None for a file of
            predictions, which has none.
        """
        inputs = self.inputs
        Z = inputs.read_unlabelled(given)
        self.unlabelled_metric = inputs.metric(Z)
        f = inputs.predict(Z) if inputs.can_predict else None
        # If S was drawn class by class, a part of it that has the population's shares is compared.
        kept = np.arange(len(inputs.y))
        if self.drawn_by_class and inputs.priors is not None:
            rng = random_stream(self.seed, "estimate", "like priors")
            kept = like_priors(inputs.y, inputs.priors, rng)
        predicted = None
        if f is not None and inputs.labels:
            predicted = f.argmax(axis=1)
        finding = self._check_support(
            "unlabelled",
            self.unlabelled_metric,
            labels=predicted,
            metric=self.metric[kept],
        )
        self.support_findings["rows without labels"] = finding
        self._compare_columns(inputs.Z[kept], Z, "rows without labels")
        if f is not None:
            self.comparisons += compare_predictions(inputs.f[kept], f)
        return Z, f

    def with_unlabelled(self, given: Path | Table) -> None:
        """Answer with the help of real rows without labels."""
        Z, f = self.compare_unlabelled(given)
        self.answers.append(self._prediction_powered(Z, f))
        self._add_partition_bound(self.inputs.metric(Z), are_real=True)

    def _prediction_powered(self, Z: np.ndarray, f: np.ndarray | None) -> Answer:
        """Return the prediction-powered answer; ``f`` is None for a file of predictions."""
        inputs = self.inputs
        reason = "a file of predictions has none for these rows"
        if f is not None:
            expected = choose_surrogate(
                inputs.loss,
                inputs.losses,
                f=inputs.f,
                f_unlabelled=f,
                X=inputs.Z,
                X_unlabelled=Z,
                seed=self.seed,
            )
            if expected is not None:
                estimate = prediction_powered_error(
                    inputs.losses, expected, level=self.level, bound=inputs.loss.bound
                )
                return Answer(estimate)
            reason = "too few labelled rows to learn which losses to expect"
        # an empty row in the table says why there is no answer
        empty = ErrorEstimate(
            name="ppi", level=self.level, n=len(inputs.y), assumes="", reason=reason
        )
        return Answer(empty, evidence=())

    def with_generated(self, source: Generator, settings: OsynChoices) -> None:
        """Answer with generated rows; each of these answers takes the generator for the truth."""
        inputs = self.inputs
        # One batch is enough for the support check.
        Z, y = next(source.encoded())
        codes = y.astype(int) if inputs.labels else None
        M = inputs.metric(Z)
        self.generator_findings.append(
            self._check_support("generated", M, labels=codes, metric=self.metric)
        )
        self.osyn = run_osyn(
            source.stream,
            self.metric,
            losses=inputs.losses,
            loss=inputs.loss,
            choices=settings,
            seed=self.seed,
        )
        synthetic = self.osyn.synthetic(self.level)
        if synthetic is not None:
            self.answers.append(Answer(synthetic, (Evidence.GENERATOR,)))
            mean_loss = synthetic.point
            sound = bounded_mean.empirical_bernstein(
                inputs.losses, self.level, inputs.loss.bound
            )
            if sound.has_interval and not sound.low <= mean_loss <= sound.high:
                text = (
                    f"the mean loss on generated rows is {mean_loss:.3g}, outside the "
                    f"{format_level(self.level)} interval {sound.low:.3g} to {sound.high:.3g} "
                    "of the labelled rows"
                )
                self.generator_findings.append(Finding(True, text))
        for bound in self.osyn.rows():
            self.answers.append(Answer(bound, (*DRAW, Evidence.GENERATOR)))
        # Real rows make the better cells.
        if self.unlabelled_metric is None:
            self._add_partition_bound(M, are_real=False)

    def _add_partition_bound(self, others: np.ndarray, are_real: bool) -> None:
        """Add the sound bound from other rows: one half makes the cells, the second their masses.

        Masses counted on the rows that made the cells would be biased.
        """
        inputs = self.inputs
        rng = random_stream(self.seed, "estimate", "cells")
        half = len(others) // 2
        others = others[rng.permutation(len(others))]
        n_cells = min(CELLS, max(1, half))
        cells = independent_cells(others[:half], n_cells, rng)
        cell_of_second = cells.assign(others[half:])
        estimate = partition_bound(
            inputs.losses,
            cells.assign(self.metric),
            np.bincount(cell_of_second, minlength=cells.n_regions),
            delta=1 - self.level,
            C_h=inputs.loss.bound,
            n_masses=len(cell_of_second) if are_real else None,
        )
        # Cells may be sampled unequally, so how the features were drawn refutes nothing here.
        evidence: tuple[Evidence, ...] = (Evidence.LABELS,)
        if not are_real:
            assumes = f"the generator is the truth; {estimate.assumes}"
            estimate = dataclasses.replace(estimate, assumes=assumes)
            evidence = (Evidence.LABELS, Evidence.GENERATOR)
        self.answers.append(Answer(estimate, evidence))

    def _check_support(
        self,
        whose: str,
        M: np.ndarray,
        *,
        labels: np.ndarray | None,
        metric: np.ndarray,
    ) -> Finding:
        """Check whether the rows M lie where labelled ones do, and store the result.

        Parameters
        ----------
        whose : str
            What the rows are: ``training``, ``unlabelled`` or ``generated``.
        M : ndarray of shape (N, d)
        labels : ndarray of shape (N,), optional
            Their classes, or predicted ones.
        metric : ndarray of shape (n, d)
            The labelled rows, or a part of them.
        """
        if len(metric) < FEWEST_PLACED:
            return Finding(
                False,
                f"{len(metric)} labelled rows are too few to tell by their place whether others "
                f"lie there, too ({FEWEST_PLACED} are needed)",
            )
        rng = random_stream(self.seed, "estimate", "support", whose)
        sample = np.sort(rng.permutation(len(M))[:SUPPORT_ROWS])
        support = check_support(
            metric,
            M[sample],
            k=min(NEIGHBOURS, max(1, len(metric) // 5)),
            labels=None if labels is None else labels[sample],
            classes=list(self.inputs.labels) or None,
            columns=self.inputs.metric_names(),
        )
        self.support[whose] = support
        return Finding(support.refused, support.describe(whose))

    def report(self, model: str, data: str) -> EstimateReport:
        """Check the assumption of every answer, choose the one to quote, and put it first."""
        inputs = self.inputs
        judged = self._judge_findings()
        preference = choose_preference(inputs, self.drawn_by_class)
        checked = [judged.check(answer) for answer in self.answers]
        quoted = choose_quoted(checked, preference)
        rows = []
        for row in checked:
            rows.append(dataclasses.replace(row, recommended=row.name == quoted))
        # a stable sort: the other rows keep their order
        rows.sort(key=lambda row: not row.recommended)
        refused = ""
        advice = ""
        if not quoted:
            refused = why_none_quoted(rows, preference)
            advice = preference.advice or advise(
                judged.refuted,
                lacks_class=self.lacks_class,
                has_classes=bool(inputs.labels),
                has_priors=inputs.priors is not None,
            )
        # Betting holds for every bounded loss; Hall's interval is narrower and only approximate.
        names = [row.name for row in rows if row.has_interval]
        approximate = "hall" if quoted == "betting" and "hall" in names else ""
        return EstimateReport(
            model=model,
            data=data,
            loss=inputs.loss.name,
            unit=inputs.loss.unit,
            bound=inputs.loss.bound,
            level=self.level,
            n=len(inputs.y),
            rows=tuple(rows),
            refused=refused,
            support=self.support,
            osyn=self.osyn,
            notes=(
                *inputs.notes,
                *(f"overruled by --drawn-at-random: {it}" for it in judged.overruled),
            ),
            advice=advice,
            assumption=describe_assumption(
                quoted, self.comparisons, overruled=bool(judged.overruled)
            ),
            approximate=approximate,
            # losses of 0 and 1 have none that would tell anything
            median=()
            if self.drawn_by_class or inputs.loss.binary
            else median_interval(inputs.losses, self.level),
            comparisons=tuple(self.comparisons),
        )

    def _judge_findings(self) -> Judged:
        """Return what the checks find, the comparisons at the level that they share.

        A finding against which the user vouches is only noted.
        """
        level = level_of_each(self.comparisons)
        vouched = ("training rows",) if self.inputs.drawn_at_random else ()
        judged = Judged()
        judged.found[Evidence.LABELS] += self.label_findings
        judged.found[Evidence.GENERATOR] += self.generator_findings
        outcomes: list[tuple[Against, About, Finding]] = []
        for comparison in self.comparisons:
            finding = comparison.finding(level)
            outcomes.append((comparison.against, comparison.about, finding))
        for against, finding in self.support_findings.items():
            outcomes.append((against, "place", finding))
        for against, about, finding in outcomes:
            if against not in vouched:
                is_of_labels = about == "labels"
                evidence = Evidence.LABELS if is_of_labels else Evidence.FEATURES
                judged.found[evidence].append(finding)
                if finding.refuted:
                    judged.refuted.append((against, about))
            elif finding.refuted:
                judged.overruled.append(finding.text)
        return judged


@dataclass(frozen=True)
class Judged:
    """What the checks found, and what the user overruled.

    Attributes
    ----------
    found : dict of Evidence to list of Finding
    refuted : list of (str, str)
        Rows that differ from the labelled ones, and in what.
    overruled : list of str
    """

    found: dict[Evidence, list[Finding]] = field(
        default_factory=lambda: {evidence: [] for evidence in Evidence}
    )
    refuted: list[tuple[Against, About]] = field(default_factory=list)
    overruled: list[str] = field(default_factory=list)

    def check(self, answer: Answer) -> ErrorEstimate:
        """Return the estimate with the outcome of the checks of its assumption."""
        estimate = answer.estimate
        # It failed by its own means: no check can save it.
        if estimate.check == FAILED:
            return estimate
        findings: list[Finding] = []
        for evidence in answer.evidence:
            findings += self.found[evidence]
        joint = join_findings(findings)
        if joint is None:
            return estimate
        reason = "; ".join(text for text in (estimate.reason, joint.text) if text)
        return estimate.with_check(not joint.refuted, reason)


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimateReport:
    """All answers, and which of them to quote.

    Attributes
    ----------
    model, data, loss, unit : str
    bound : float
        Upper bound of the loss.
    level : float
    n : int
        Number of labelled rows.
    rows : tuple of ErrorEstimate
        The recommended one first.
    refused : str
        Why none is recommended; empty if one is.
    support : dict of str to Support
        By the rows that were checked: ``training``, ``unlabelled``, ``generated``.
    osyn : OsynRun, optional
    notes : tuple of str
    advice : str
        What to do if none is recommended.
    assumption : str
        What the recommended one assumes about the draw of the rows, and how that was tested.
    approximate : str
        Name of a narrower interval to look at beside the recommended one; empty for none.
    median : tuple of float
        The median loss and its interval; empty for the 0-1 loss, and for rows drawn by class.
    comparisons : tuple of Comparison
        Comparisons of labelled rows with others.
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
    median: tuple[float, ...] = ()
    comparisons: tuple[Comparison, ...] = ()

    @property
    def recommended(self) -> ErrorEstimate | None:
        """The estimate to quote, if there is one."""
        for row in self.rows:
            if row.recommended:
                return row
        return None

    def text(self) -> str:
        """Return the estimates as text, for a terminal."""
        return report_text(self)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        # pictures need matplotlib, which few callers draw with
        from amlb_ext.estimate.plot import draw_estimates

        svg = draw_estimates(self).decode()
        shown = self.table()[["name", "point", "low", "high", "check", "reason"]]
        lines = headline(self).splitlines()
        return html_view(lines, shown, svg[svg.index("<svg") :])

    def table(self) -> pd.DataFrame:
        """Return a table with a row for each estimator."""
        return pd.DataFrame([dataclasses.asdict(row) for row in self.rows])

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; missing numbers are null."""
        support = {
            name: {
                "share_inside": entry.share_inside,
                "own": entry.labelled_share_inside,
                "k": entry.k,
                "refused": entry.refused,
                "lacking": entry.lacking,
                "reason": entry.reason,
            }
            for name, entry in self.support.items()
        }
        comparisons = [
            {"what": one.what, "against": one.against, "p": one.p}
            for one in self.comparisons
        ]
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
            "median": list(self.median) or None,
            "comparisons": comparisons,
            "level_of_each_comparison": level_of_each(self.comparisons),
            "estimates": to_json_values(self.rows),
            "support": to_json_values(support),
            "osyn": None if self.osyn is None else self.osyn.to_json(),
            "notes": list(self.notes),
        }
