"""Does a cheaper region foresee failures as well? AUC of P(F fails | x) on rows it has not seen.

    python tests/benchmarks/region_learning.py DATA [TABLE ...] [--choices]

DATA holds the tables of ``benchmarks/studies/composition.yaml``. Half of the rows, 40,000 at most,
train F (histogram boosting of 60 rounds) and the region as ``generate`` does; the other half is
held out. Printed for each table:

- on the training rows, AUC for F's out-of-fold failures, and seconds: *per part*, five regions each
  learnt without a part and asked about it, and *out of bag*, the one region of all parts;
- on the held-out rows, AUC for the failures of F itself, and seconds to learn and ask, for regions
  learnt from at most so many rows by so many trees.

With ``--choices`` the mixtures of the main test file are compared instead, on 6,000 training rows
and with either kind of weights: the agreement (tau) of every mixture, and which is chosen.

Processor seconds, one thread.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from amlb_ext.core.config import build_config
from amlb_ext.core.task import Fold
from amlb_ext.hardening import weights
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.hardening.split import PARTS, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.validity import composition
from amlb_ext.validity.held_out_parts import HeldOutCandidates
from benchmarks.studies.fidelity.protocol import load_table, read_protocol

PROTOCOL = Path("benchmarks/studies/composition.yaml")
MOST_TRAINING_ROWS = 40_000
#: Training rows on which mixtures are compared.
CHOICE_ROWS = 6_000
#: Rows that a region is learnt from at most, and its trees.
SIZES = ((20_000, 100), (20_000, 50), (10_000, 100), (10_000, 50), (5_000, 100))
CONFIG = build_config(
    {"baseline": {"model": "hist_gradient_boosting", "params": {"max_iter": 60}}}
)


def judged_halves(task):
    """Return Z and bad flags of the training rows and of the others, and the training parts."""
    rows = np.random.default_rng(0).permutation(len(task))
    n_train = min(len(rows) // 2, MOST_TRAINING_ROWS)
    train, held_out = np.sort(rows[:n_train]), np.sort(rows[n_train : 2 * n_train])
    encoder = Encoder(task.columns).fit(task.features.iloc[train])
    scale = TargetEncoder(task.kind, task.labels, task.target.iloc[train])
    Z = encoder.transform(task.features.iloc[train])
    y = scale.transform(task.target.iloc[train])
    parts = cross_folds(y, scale.n_classes, PARTS, 0)
    F = make_baseline(CONFIG.baseline, task, encoder, scale)
    f, _ = F.cross_fit(Z, y, train, parts, 0)
    y, f = y[:, None], f[:, None]
    rule = settle_rule(CONFIG.hardness, task.kind, task.labels, y=y, f=f, t=f)
    is_bad = rule.select(rule.hardness(y, f, f))
    F = F.fit(Z, y[:, 0], 0)
    Z_new = encoder.transform(task.features.iloc[held_out])
    y_new = scale.transform(task.target.iloc[held_out])[:, None]
    f_new = F.predict(Z_new)[:, None]
    is_bad_new = rule.select(rule.hardness(y_new, f_new, f_new))
    return (Z, is_bad), (Z_new, is_bad_new), parts


def timed(learn):
    """Return what a function returns, and its processor seconds."""
    start = time.process_time()
    return learn(), time.process_time() - start


def weights_per_part(Z, is_bad, parts):
    """Return the weights of each part by a region of the others."""
    learnt_weights = np.empty(len(Z))
    for number, (others, held) in enumerate(parts):
        region = Region(number).fit(Z[others], is_bad[others])
        learnt_weights[held] = region.weights(Z[held])
    return learnt_weights


def weights_by_size(train, Z_new, rows, trees):
    """Return the weights of new rows by a region of another size."""

    def forest(_, **settings):
        return RandomForestClassifier(trees, **settings)

    with (
        patch.object(weights, "MOST_ROWS", rows),
        patch.object(weights, "RandomForestClassifier", forest),
    ):
        return Region(0).fit(*train).weights(Z_new)


def print_choices(name, task):
    """Print how each mixture orders candidates, by either kind of weights."""
    rows = np.random.default_rng(0).permutation(len(task))[: CHOICE_ROWS * 5 // 4]
    fold = Fold(rows[:CHOICE_ROWS], rows[CHOICE_ROWS:])
    tasks = [task.with_folds((fold,))]
    cross = cross_fit(tasks, 0, CONFIG)
    held_out = HeldOutCandidates(tasks, CONFIG, cross)
    for way, beyond in (("per part", CHOICE_ROWS), ("out of bag", 0)):
        with patch.object(composition, "ONE_REGION_BEYOND", beyond):
            choice = composition.choose_composition(tasks, 0, CONFIG, cross, held_out)
        taus = " ".join(f"{option.tau:.3f}" for option in choice.options)
        print(f"{name:10} {way:10} {taus}, number {choice.chosen} chosen", flush=True)


def main():
    """Print one line per table and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--choices", action="store_true")
    arguments = parser.parse_args()
    tables = read_protocol(PROTOCOL).tables
    for name in arguments.tables or tables:
        task = load_table(name, tables[name], arguments.data)
        if arguments.choices:
            print_choices(name, task)
            continue
        train, (Z_new, is_bad_new), parts = judged_halves(task)
        head = f"{name:10} {len(train[0]):6,} rows, {train[1].mean():4.0%} bad"
        ways = {
            "per part": lambda train=train, parts=parts: weights_per_part(
                *train, parts
            ),
            "out of bag": lambda train=train: Region(0).fit(*train).out_of_bag_,
        }
        for way, learn in ways.items():
            learnt_weights, seconds = timed(learn)
            auc = roc_auc_score(train[1], learnt_weights)
            print(f"{head}, {way:19} {auc:.4f} {seconds:6.1f} s", flush=True)
        for rows, trees in SIZES:
            learnt_weights, seconds = timed(
                lambda train=train, Z=Z_new, rows=rows, trees=trees: weights_by_size(
                    train, Z, rows, trees
                )
            )
            auc = roc_auc_score(is_bad_new, learnt_weights)
            way = f"{rows:6,} x {trees}"
            print(f"{head}, {way:19} {auc:.4f} {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
