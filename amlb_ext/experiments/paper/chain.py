"""One split of the paper's experiment: from a task to F's and G's scores (sections 4.1 to 4.4).

The stages are those of the pipeline (encoder, K, search, synthesizer). What the pipeline adds to
them (the oracle, label checks, region weights, dropped repetitions) the paper has not, so it is
not done here either; the certificates beside the tables tell what it would have said.

Notation
--------
X_b, y_b : bad rows of the test part;  X_ga, y_ga : augmented;  X~, y~ : synthetic
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.experiments.paper.measures import score_predictions, wasserstein_distances
from amlb_ext.experiments.paper.settings import Setting
from amlb_ext.hardening.baseline.estimator import Baseline
from amlb_ext.hardening.baseline.from_file import make_baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.made_rows.augment import perturb_targets
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.synthesizers import make_synthesizer

#: Fewer augmented rows than this teach a synthesizer nothing.
LEAST = 2


@dataclass
class ScoredRows:
    """Rows of one part with the predictions of F and G."""

    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    g: np.ndarray

    def take(self, rows: np.ndarray) -> ScoredRows:
        """Return some of the rows, by position or mask."""
        return ScoredRows(self.Z[rows], self.y[rows], self.f[rows], self.g[rows])


@dataclass
class SettingOutcome:
    """What one row of a table gives on one split.

    Attributes
    ----------
    parts : dict of str to Points
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
    split : int, optional
        What keys the random streams, when the task holds some of the splits only.

    Examples
    --------
    >>> from amlb_ext.core.config import SplitConfig
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.experiments.paper.data import make_toy
    >>> from amlb_ext.experiments.paper.settings import EXPERIMENTS, settings_of
    >>> quick = {"synthesizer.epochs": 1, "search.generations": 0}
    >>> setting = settings_of(EXPERIMENTS["table-a1"], "toy_10", quick)[0]
    >>> task = split_task(make_toy("10"), SplitConfig(folds=2), seed=1)
    >>> outcome = Split(task, 0, setting).run(setting)
    >>> sorted(outcome.scores), sorted(outcome.scores["bad"]["F"])
    (['bad', 'ga', 'synthetic'], ['mse', 'residual_variance', 'smape', 'w_features', 'w_target'])
    """

    def __init__(
        self, task: Task, number: int, setting: Setting, split: int | None = None
    ) -> None:
        rows = task.folds[number]
        self.key = (task.name, number if split is None else split)
        self.seed = setting.config.seed
        self.encoder = Encoder(task.columns).fit(task.features.iloc[rows.train])
        self.target = TargetEncoder(
            task.kind, task.labels, task.target.iloc[rows.train]
        )
        self.kind, self.labels = task.kind, task.labels
        self.Z, self.y = self._encoded(task, rows.train)
        seed = derive_seed(self.seed, *self.key, "fit") % 2**31
        self.F: Baseline = make_baseline(
            setting.config.baseline, task, self.encoder, self.target
        )
        self.F.fit(self.Z, self.y, seed)
        self.G: Baseline = make_baseline(
            setting.candidate, task, self.encoder, self.target
        )
        self.G.fit(self.Z, self.y, seed)
        self.test = self._judged(*self._encoded(task, rows.test))

    def run(self, setting: Setting) -> SettingOutcome:
        """Find the bad rows, augment them, learn them, sample; score F and G on each part."""
        config = setting.config
        # rules read rows with an axis of targets, and here there is one
        y, f = self.test.y[:, None], self.test.f[:, None]
        rule = settle_rule(config.hardness, self.kind, self.labels, y=y, f=f)
        bad = rule.select(rule.hardness(y, f))
        found = self.test.take(bad)
        parts = {"test": self.test, "bad": found}
        counts = {
            "test": len(self.test.y),
            "bad": len(found.y),
            "ga": 0,
            "synthetic": 0,
        }
        if len(found.y):
            searched = self._augment(setting, rule, found)
            counts["ga"] = len(searched.y)
            if counts["ga"]:
                parts["ga"] = searched
            if setting.sampled and counts["ga"] >= LEAST:
                parts["synthetic"] = self._sample(setting, searched)
                counts["synthetic"] = len(parts["synthetic"].y)
        else:
            del parts["bad"]
        outcome = SettingOutcome(parts, counts=counts)
        for name in ("bad", "ga", "synthetic"):
            if name in parts:
                outcome.scores[name] = self._scores(parts, name)
        return outcome

    def _augment(self, setting: Setting, rule: BadRule, bad: ScoredRows) -> ScoredRows:
        """Return X_ga: searched copies of each bad point, those F is good at dropped."""
        config, read, target = setting.config.search, setting.readings, self.target
        rng = random_stream(self.seed, *self.key, setting.name, "augment")
        copies = min(config.copies, max(1, config.max_rows // len(bad.y)))
        own, bad = bad, bad.take(np.repeat(np.arange(len(bad.y)), copies))
        moved = perturb_targets(
            bad.y, self.test.y, config, rng, n_classes=target.n_classes
        )
        y = target.snap(moved)
        pool = bad.Z if read.pool == "bad" else self.test.Z
        m = self.encoder.n_categorical_
        domain = learn_domain(
            pool, self.Z, self.y, n_classes=target.n_classes, n_categorical=m
        )
        # section 4.3.2: confidence in the positive class falls, whatever the row's label
        lowered = (
            np.ones_like(y) if target.n_classes and read.fitness == "printed" else y
        )
        seed = derive_seed(self.seed, *self.key, setting.name, "search")
        Z = genetic_search(
            self.F.predict, bad.Z, lowered, domain=domain, config=config, seed=seed
        )[0]
        made = self._judged(Z, y)
        if config.reapply:
            made = made.take(
                rule.select(rule.hardness(made.y[:, None], made.f[:, None]))
            )
        if read.with_bad:
            both = zip(vars(own).values(), vars(made).values(), strict=True)
            made = ScoredRows(*(np.concatenate(pair) for pair in both))
        return made

    def _sample(self, setting: Setting, searched: ScoredRows) -> ScoredRows:
        """Return X~: so many rows per augmented row, each with that row's target."""
        config = setting.config.synthesizer
        rng = random_stream(self.seed, *self.key, setting.name, "synthesize")
        model = make_synthesizer(config)
        cards, classes = self.encoder.cards_, self.target.n_classes
        model.fit(searched.Z, searched.y, cards=cards, n_classes=classes, rng=rng)
        y = np.repeat(searched.y, round(config.times))
        return self._judged(*model.sample(len(y), rng, y))

    def _encoded(self, task: Task, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Z = self.encoder.transform(task.features.iloc[rows])
        return Z, self.target.transform(task.target.iloc[rows])

    def _judged(self, Z: np.ndarray, y: np.ndarray) -> ScoredRows:
        return ScoredRows(Z, y, self.F.predict(Z), self.G.predict(Z))

    def _scores(
        self, parts: dict[str, ScoredRows], name: str
    ) -> dict[str, dict[str, float]]:
        part = parts[name]
        against = parts["ga"] if name == "synthetic" else parts["bad"]
        extra = wasserstein_distances(part.Z, against.Z)
        return {
            "F": score_predictions(part.y, part.f) | extra,
            "G": score_predictions(part.y, part.g),
        }


def run_split(
    task: Task, number: int, settings: Sequence[Setting], split: int | None = None
) -> dict[str, SettingOutcome]:
    """Run all rows of a table that share a data set, F and G on one split; see :class:`Split`.

    Returns
    -------
    dict of str to Outcome
        By the settings' names.
    """
    fitted = Split(task, number, settings[0], split)
    return {setting.name: fitted.run(setting) for setting in settings}


def to_json(outcome: SettingOutcome) -> dict[str, Any]:
    """Return counts and scores as JSON values."""
    return {"counts": outcome.counts, "scores": outcome.scores}
