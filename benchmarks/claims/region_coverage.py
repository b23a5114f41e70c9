"""Which region does the interval of `compare` where F fails speak of?

    python -m benchmarks.claims.region_coverage [DRAWS] [SEED] [RULE ...]

Populations and models are those of compare_claims.py; P(y | x) is known, so P(bad | x) is, too. The
interval is held against two truths, each a mean over 10,000 further rows:

- *as learnt*: rows weighted as the forests weight them that learnt the region from the 600 rows;
- *exact*: rows weighted by P(bad | x) itself, which unlimited rows would teach.

Printed, for each rule and model: how often the interval holds each truth, and the mean error of the
estimate against each, with standard errors over draws. *Plain* is the interval that takes the
learnt weights as they are, without the component for learning them.
"""

import sys
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd

from amlb_ext.comparison.models import predict_rows
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.row_losses import brier_loss
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.weights import Region
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.stats.contrasts import ComparedUnits, choose_weighting
from amlb_ext.units import region as region_module
from amlb_ext.units.labelled import read_labelled_rows
from amlb_ext.units.rows import judge_rows
from benchmarks.claims.compare_claims import draw_models, draw_rows, expected_loss

TRUTH = 10_000


class KeptRegion(Region):
    """Keeps every forest that is fitted, in turn."""

    fitted: ClassVar[list[Region]] = []

    def fit(self, *args, **more):
        """Fit, and keep the forest."""
        KeptRegion.fitted.append(self)
        return super().fit(*args, **more)


def find_kept_region(rows, f, loss_f, rule, seed):
    """Return the judged rows, and the forests that weigh the rows of each part."""
    KeptRegion.fitted.clear()
    with patch.object(region_module, "Region", KeptRegion):
        judged = judge_rows(rows, f, loss_f, HardnessConfig(rule=rule), seed=seed)
    # first those of the parts, then those of the jackknife
    return judged, KeptRegion.fitted[: region_module.GROUPS]


def chance_of_bad(rule, probabilities, chance):
    """Return P(bad | x) of each row."""
    if rule.rule == "band":
        return (probabilities.max(axis=1) <= rule.alpha).astype(float)
    is_bad_if_one, is_bad_if_zero = (probabilities[:, [1, 0]] <= rule.alpha).T
    return chance * is_bad_if_one + (1 - chance) * is_bad_if_zero


def run_draw(seed, rule):
    """Return one record for each candidate."""
    rng = np.random.default_rng(seed)
    turned, F, candidates, (_, _, X1, y1) = draw_models(rng)
    model = ModelAdapter(F, "F")
    rows = read_labelled_rows(X1, y1, models=[model])
    f = predict_rows(model, rows)
    loss_f = brier_loss(y1, F.predict_proba(X1))
    judged, forests = find_kept_region(rows, f, loss_f, rule, seed)
    region = judged.compared
    if not choose_weighting(region.weights).is_weighted:
        return []
    others, _, chance = draw_rows(TRUTH, turned, rng)
    Z = rows.encoder.transform(others)
    as_learnt = np.mean([forest.weights(Z) for forest in forests], axis=0)
    probabilities = F.predict_proba(others)
    settled = settle_rule(
        HardnessConfig(rule=rule),
        rows.task.kind,
        rows.task.labels,
        y=rows.y[:, None],
        f=f.f[:, None],
        decided=f.decided,
    )
    exact = chance_of_bad(settled, probabilities, chance)
    compared = ComparedUnits(
        loss_f=loss_f, weights=region.weights, reweighted=region.reweighted
    )
    plain = ComparedUnits(loss_f=loss_f, weights=region.weights)
    records = []
    for name, model in candidates.items():
        loss = brier_loss(y1, model.predict_proba(X1))
        gap = expected_loss(model.predict_proba(others), chance)
        gap -= expected_loss(probabilities, chance)
        found, narrow = compared.contrast(loss, loss_f), plain.contrast(loss, loss_f)
        record = {"rule": rule, "model": name, "width": found.width}
        for which, weights in (("as learnt", as_learnt), ("exact", exact)):
            truth = float(np.average(gap, weights=weights))
            record[f"{which}: held"] = found.low <= truth <= found.high
            record[f"{which}: held, plain"] = narrow.low <= truth <= narrow.high
            record[f"{which}: error"] = found.point - truth
        records.append(record)
    return records


def main(draws=40, seed=0, *rules):
    """Run the draws and print the table."""
    records = []
    for number in range(int(draws)):
        for rule in rules or ("band", "wrong"):
            records += run_draw(int(seed) + number, rule)
    table = pd.DataFrame(records)
    by_model = table.groupby(["rule", "model"])
    n = by_model.size()
    shown = by_model.mean(numeric_only=True).round(3)
    for which in ("as learnt", "exact"):
        for column in ("held", "held, plain"):
            shown[f"{which}: {column}"] = by_model[f"{which}: {column}"].mean().round(3)
        shown[f"{which}: error ±"] = (
            by_model[f"{which}: error"].std() / np.sqrt(n)
        ).round(4)
    print(f"{draws} draws from seed {seed}; intervals {n.to_dict()}")
    print(shown.T.to_string(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
