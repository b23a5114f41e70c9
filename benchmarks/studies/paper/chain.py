"""One split of the paper's experiment: from a task to F's and G's scores (sections 4.1 to 4.4).

The stages are those of the pipeline (encoder, K, search, synthesizer). What the pipeline adds to
them (the oracle, label checks, region weights, dropped repetitions) the paper has not, so it is
not done here either; the certificates beside the tables tell what it would have said.

Notation
--------
X_b, y_b : bad rows of the test part;  X_ga, y_ga : augmented;  X~, y~ : synthetic
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import wasserstein_distance
from sklearn.metrics import f1_score, roc_auc_score

from amlb_ext.core.rng import derive_int_seed, derive_seed, random_stream
from amlb_ext.core.row_losses import symmetric_percentage_error
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import Baseline
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.made_rows.augment import perturb_targets
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.synthesizers import make_synthesizer
from benchmarks.studies.encoded import EncodedTask
from benchmarks.studies.paper.settings import Setting

# Dense lines below: each is one of the paper's formulas.


def mean_smape(y: np.ndarray, f: np.ndarray) -> float:
    """Return the symmetric mean absolute percentage error, between 0 and 2 (section 5.2).

    Rows with ``|y| + |f| = 0`` count 0.

    Examples
    --------
    >>> mean_smape(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    0.5
    """
    return float(np.mean(symmetric_percentage_error(y, f)))


def score_predictions(y: np.ndarray, f: np.ndarray) -> dict[str, float]:
    """Return MSE, SMAPE, residual variance and W1 of targets; or F1 and ROC AUC.

    The positive class is code 1; it is predicted from probability 1/2 on. AUC is NaN where all
    rows have one label. ``w_target`` is the distance between targets and predictions: the only
    reading under which the row of the bad points themselves is not 0 in Table 1.

    Examples
    --------
    >>> scores = score_predictions(np.array([0.0, 1.0]), np.array([0.5, 1.0]))
    >>> scores["mse"], scores["w_target"]
    (0.125, 0.25)
    """
    if f.ndim == 1:
        residual = y - f
        return {
            "mse": float(np.mean(residual**2)),
            "smape": mean_smape(y, f),
            "residual_variance": float(np.var(residual)),
            "w_target": float(wasserstein_distance(y, f)),
        }
    is_positive = (y == 1).astype(int)
    n_positive = is_positive.sum()
    p = f[:, 1]
    # bad rows may all be of one label, for which no ranking exists
    auc = math.nan
    if 0 < n_positive < len(is_positive):
        auc = float(roc_auc_score(is_positive, p))
    f1 = float(f1_score(is_positive, p >= 0.5, zero_division=0.0))
    return {"f1": f1, "auc": auc}


def wasserstein_distances(A: np.ndarray, B: np.ndarray) -> dict[str, float]:
    """Return the mean over columns of the Wasserstein distance between encoded rows.

    Categories count by their ordinal codes (section 4.3.1); missing numbers are left out.

    Examples
    --------
    >>> wasserstein_distances(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]]))
    {'w_features': 0.5}
    """
    distances = []
    for a, b in zip(A.T, B.T, strict=True):
        a = a[~np.isnan(a)]
        b = b[~np.isnan(b)]
        # a column without a number on one side has no distance
        if len(a) and len(b):
            distances.append(wasserstein_distance(a, b))
    return {"w_features": float(np.mean(distances)) if distances else math.nan}


#: Fewer augmented rows than this teach a synthesizer nothing.
LEAST = 2


@dataclass(kw_only=True)
class ScoredRows:
    """Rows of one part with the predictions of F and G."""

    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    g: np.ndarray

    def take_rows(self, rows: np.ndarray) -> ScoredRows:
        """Return some of the rows, by position or mask."""
        return ScoredRows(
            Z=self.Z[rows], y=self.y[rows], f=self.f[rows], g=self.g[rows]
        )

    def join_rows(self, other: ScoredRows) -> ScoredRows:
        """Return these rows, then the others."""
        return ScoredRows(
            Z=np.concatenate([self.Z, other.Z]),
            y=np.concatenate([self.y, other.y]),
            f=np.concatenate([self.f, other.f]),
            g=np.concatenate([self.g, other.g]),
        )


@dataclass
class SettingOutcome:
    """What one row of a table gives on one split.

    Attributes
    ----------
    parts : dict of str to ScoredRows
        ``test``, ``bad``, ``ga``, ``synthetic``; those without rows are left out.
    scores : dict
        Part → model (``F``, ``G``) → measure → value.
    counts : dict of str to int
    """

    parts: dict[str, ScoredRows]
    scores: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class Split:
    """One split of a task with F and G fitted; several settings may share it.

    Parameters
    ----------
    task : Task
        With folds.
    number : int
        Which fold.
    setting : Setting
        F, G and the seed are taken from it.

    Examples
    --------
    >>> from amlb_ext.core.config import SplitConfig
    >>> from amlb_ext.hardening.split import split_task
    >>> from benchmarks.studies.paper.data import make_toy
    >>> from benchmarks.studies.paper.settings import TOYS, PaperSettings, row_settings
    >>> quick = {"synthesizer": {"epochs": 1}, "search": {"operators": {"generations": 0}}}
    >>> [setting] = row_settings(TOYS["toy_10"], "toy_10", PaperSettings(config=quick))
    >>> task = split_task(make_toy("10"), SplitConfig(folds=2), seed=1)
    >>> outcome = Split(task, 0, setting).run_setting(setting)
    >>> sorted(outcome.scores), sorted(outcome.scores["bad"]["F"])
    (['bad', 'ga', 'synthetic'], ['mse', 'residual_variance', 'smape', 'w_features', 'w_target'])
    """

    def __init__(self, task: Task, number: int, setting: Setting) -> None:
        rows = task.folds[number]
        self.key = (task.name, number)
        self.seed = setting.config.seed
        self.kind = task.kind
        self.labels = task.labels
        encoded = EncodedTask(task, rows.train)
        self.encoder, self.target = encoded.encoder, encoded.scale
        self.Z, self.y = encoded.rows(rows.train)
        # one seed for both: where F and G are the same model they are the same fit
        seed = derive_int_seed(self.seed, *self.key, "fit")
        self.F: Baseline = make_baseline(
            setting.config.baseline, task, self.encoder, self.target
        )
        self.F.fit(self.Z, self.y, seed)
        self.G: Baseline = make_baseline(
            setting.candidate, task, self.encoder, self.target
        )
        self.G.fit(self.Z, self.y, seed)
        self.test = self._score_rows(*encoded.rows(rows.test))

    def run_setting(self, setting: Setting) -> SettingOutcome:
        """Find the bad rows, augment them, learn them, sample; score F and G on each part."""
        # rules read rows with an axis of targets, and here there is one
        rule = settle_rule(
            setting.config.hardness,
            self.kind,
            self.labels,
            y=self.test.y[:, None],
            f=self.test.f[:, None],
        )
        bad = self.test.take_rows(_is_bad(rule, self.test))
        parts = {"test": self.test}
        if len(bad.y):
            parts["bad"] = bad
            augmented = self._augment_rows(setting, rule, bad)
            if len(augmented.y):
                parts["ga"] = augmented
            if setting.sampled and len(augmented.y) >= LEAST:
                parts["synthetic"] = self._sample_rows(setting, augmented)
        # a count of 0 stands for a part that is left out
        counts = {}
        for name in ("test", "bad", "ga", "synthetic"):
            counts[name] = len(parts[name].y) if name in parts else 0
        outcome = SettingOutcome(parts, counts=counts)
        for name in ("bad", "ga", "synthetic"):
            if name in parts:
                outcome.scores[name] = self._score_part(parts, name)
        return outcome

    def _augment_rows(
        self, setting: Setting, rule: BadRule, bad: ScoredRows
    ) -> ScoredRows:
        """Return X_ga: searched copies of each bad point, those F is good at dropped."""
        config = setting.config.search
        readings = setting.readings
        n_classes = self.target.n_classes

        # (a) copies of each bad point, with perturbed targets
        n_copies = min(config.copies, max(1, config.max_rows // len(bad.y)))
        copied = bad.take_rows(np.repeat(np.arange(len(bad.y)), n_copies))
        rng = random_stream(self.seed, *self.key, setting.name, "augment")
        perturbed = perturb_targets(
            copied.y, self.test.y, config, rng, n_classes=n_classes
        )
        y = self.target.snap(perturbed)

        # (b) the search moves their features to where F errs more
        pool = bad if readings.pool == "bad" else self.test
        domain = learn_domain(
            pool.Z,
            self.Z,
            self.y,
            n_classes=n_classes,
            n_categorical=self.encoder.n_categorical_,
        )
        lowered = y
        if n_classes and readings.fitness == "printed":
            # section 4.3.2: confidence in the positive class falls, whatever the row's label
            lowered = np.ones_like(y)
        Z, _ = genetic_search(
            self.F.predict,
            copied.Z,
            lowered,
            domain=domain,
            config=config,
            seed=derive_seed(self.seed, *self.key, setting.name, "search"),
        )
        augmented = self._score_rows(Z, y)

        # (c) a point at which F is good after all is no bad point
        if config.operators.reapply:
            augmented = augmented.take_rows(_is_bad(rule, augmented))
        if readings.with_bad:
            augmented = bad.join_rows(augmented)
        return augmented

    def _sample_rows(self, setting: Setting, augmented: ScoredRows) -> ScoredRows:
        """Return X~: so many rows per augmented row, each with that row's target."""
        config = setting.config.synthesizer
        rng = random_stream(self.seed, *self.key, setting.name, "synthesize")
        synthesizer = make_synthesizer(config)
        synthesizer.fit(
            augmented.Z,
            augmented.y,
            cards=self.encoder.cards_,
            n_classes=self.target.n_classes,
            rng=rng,
        )
        # targets are given, not sampled: the same for F, G and every synthesizer
        y = np.repeat(augmented.y, round(config.times))
        return self._score_rows(*synthesizer.sample(len(y), rng, y))

    def _score_rows(self, Z: np.ndarray, y: np.ndarray) -> ScoredRows:
        return ScoredRows(Z=Z, y=y, f=self.F.predict(Z), g=self.G.predict(Z))

    def _score_part(
        self, parts: dict[str, ScoredRows], name: str
    ) -> dict[str, dict[str, float]]:
        """Return the measures of F and G, and with F's how far the rows are from their source."""
        part = parts[name]
        source = parts["ga"] if name == "synthetic" else parts["bad"]
        distances = wasserstein_distances(part.Z, source.Z)
        return {
            "F": score_predictions(part.y, part.f) | distances,
            "G": score_predictions(part.y, part.g),
        }


def _is_bad(rule: BadRule, rows: ScoredRows) -> np.ndarray:
    """Return K of rows, ``(n,)`` bool; rules read them with an axis of targets."""
    return rule.select(rule.hardness(rows.y[:, None], rows.f[:, None]))


def run_split(
    task: Task, number: int, settings: Sequence[Setting]
) -> dict[str, SettingOutcome]:
    """Run all rows of a table that share a data set, F and G on one split; see :class:`Split`.

    Returns
    -------
    dict of str to SettingOutcome
        By the settings' names.
    """
    # the rows of a table differ by K and the search, never by F, G or the seed
    fitted = Split(task, number, settings[0])
    return {setting.name: fitted.run_setting(setting) for setting in settings}
