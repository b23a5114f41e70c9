"""Do intervals hold where errors have tails, and what do the claims find and get wrong?

Each population is known: samples of n rows are drawn from it, and every interval is held against
the population's mean. Simulated ones are regressions with noise of a t distribution with 3 degrees,
with 1 % of the rows contaminated, and with a linear F that extrapolates where 1 % of the rows lie
six times as far out. With ``--data`` (a folder of the files that
``coverage_tails.yaml`` names) a linear F, its re-fits and the candidates are fitted
on 3,000 rows, and up to 12,000 others are the population.

Told, for each population and n: coverage of 95 % intervals without and with the cap, over all
rows and where F fails (where its weights are worth 50 rows): mean over models / least / most.
Then power and false claims, beside a paired t test on all rows with Holm's adjustment: *any* is a
candidate that is truly better overall or where F fails, found by either question; draws with a
false claim are those of both questions. The estimand is the capped loss, for the t test as well.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig, HardnessConfig
from amlb_ext.core.row_losses import row_loss
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.split import cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.models.registry import parse_model
from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.claims import OVERALL, REGION, answer_questions
from amlb_ext.stats.contrasts import ComparedUnits, choose_weighting, mean_contrast
from amlb_ext.stats.weighted_mean import holm_adjusted, p_value
from amlb_ext.validity.candidates import candidate_zoo, fit_zoo
from amlb_ext.validity.task_rows import refit_baseline
from benchmarks.studies.encoded import EncodedTask
from benchmarks.studies.engine import OneStream, Study, flat_rows, grid
from benchmarks.studies.fidelity.protocol import load_table, read_protocol
from benchmarks.studies.page import summarize_means

SIZES = (300, 1000)
SIMULATED, TRAIN, MOST = 40_000, 3_000, 12_000
SIMULATIONS = ("t3", "contaminated", "extrapolates")
PROTOCOL = Path(__file__).with_suffix(".yaml")
TABLES = tuple(read_protocol(PROTOCOL).tables)


class TailSettings(OneStream):
    """What the study of tails may be told.

    Attributes
    ----------
    draws : int
        Of each population and number of rows.
    tables : tuple of str
        Those of ``--data``.
    seed : int
    """

    tables: tuple[str, ...] = TABLES


@dataclass
class Population:
    """Losses of F, its re-fits and candidates on all rows there are, and the region's weights."""

    name: str
    loss_f: np.ndarray
    losses: pd.DataFrame
    weights: np.ndarray
    is_regression: bool = True
    refits: pd.DataFrame | None = field(default=None)


def simulated(name, rng):
    """Return a population whose F is a line; candidates bend it, or fit it again."""
    x = rng.normal(size=(SIMULATED, 4))
    truth = x[:, 0] + 0.5 * x[:, 1] ** 2
    noise = 0.5 * rng.normal(size=SIMULATED)
    if name == "t3":
        noise = 0.5 * rng.standard_t(3, SIMULATED)
    if name == "contaminated":
        noise += (rng.random(SIMULATED) < 0.01) * rng.normal(0, 8, SIMULATED)
    if name == "extrapolates":
        x *= np.where(rng.random(SIMULATED) < 0.01, 6, 1)[:, None]
        truth = np.tanh(x[:, 0]) + 0.5 * np.tanh(x[:, 1])
    y = truth + noise
    line = 0.8 * x[:, 0] + 0.4
    candidates = {
        "line again": 0.81 * x[:, 0] + 0.39,
        "steeper": 0.9 * x[:, 0] + 0.5,
        "bent": x[:, 0] + 0.3 * x[:, 1] ** 2 + 0.2,
        "wavy": truth + 0.2 * np.sin(3 * x[:, 2]),
        "clipped": np.clip(0.7 * x[:, 0], -1, 1) + 0.5,
        "tilted": line + 0.3 * x[:, 3],
    }
    refits = {}
    for number in range(5):
        shift, slope = rng.normal(0, 0.01, 2)
        refits[number] = (line + shift + slope * x[:, 0] - y) ** 2
    span = np.ptp(np.quantile(y, [0.001, 0.999]))
    losses = {key: (f - y) ** 2 / span**2 for key, f in candidates.items()}
    return Population(
        name=name,
        loss_f=(line - y) ** 2 / span**2,
        losses=pd.DataFrame(losses),
        weights=1 / (1 + np.exp(-2 * (np.abs(x[:, 1]) - 1.5))) + 1e-4,
        refits=pd.DataFrame(refits) / span**2,
    )


def from_table(name, folder, seed):
    """Return the rows of a table that nothing was fitted on, with models fitted on the others."""
    task = load_table(name, read_protocol(PROTOCOL).tables[name], folder)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(task.target))
    train, rest = order[:TRAIN], order[TRAIN : TRAIN + MOST]
    encoded = EncodedTask(task, train)
    (Z, y), (Z1, y1) = encoded.rows(train), encoded.rows(rest)
    spec = parse_model(BaselineConfig(model="ridge"), task.kind)
    shape = encoded.shape
    F = EstimatorBaseline(spec, *shape).fit(Z, y, seed)
    twins, _ = refit_baseline(F, Z, y, refits=5, seed=seed, key=(name,))
    zoo, _ = fit_zoo(candidate_zoo(task.kind), *shape, Z, y, seed)
    parts = cross_folds(y, encoded.scale.n_classes, 5, seed)
    held_out, _ = EstimatorBaseline(spec, *shape).cross_fit(
        Z, y, np.arange(TRAIN), parts, seed
    )
    columns = {"y": y[:, None], "f": held_out[:, None]}
    rule = settle_rule(HardnessConfig(), task.kind, task.labels, **columns)
    bad = rule.select(rule.hardness(*columns.values()))
    losses = {key: row_loss(y1, fitted.predict(Z1)) for key, fitted in zoo.items()}
    refits = {i: row_loss(y1, twin.predict(Z1)) for i, twin in enumerate(twins)}
    return Population(
        name=name,
        loss_f=row_loss(y1, F.predict(Z1)),
        losses=pd.DataFrame(losses),
        weights=Region(seed).fit(Z, bad).weights(Z1),
        is_regression=not task.labels,
        refits=pd.DataFrame(refits),
    )


def draw_sample(population, n, rng):
    """Return one record per model: coverage with and without the cap, claims and truths."""
    rows = rng.integers(0, len(population.loss_f), n)
    weights = population.weights[rows]
    is_weighted = choose_weighting(weights).is_weighted
    records = {name: {"model": name} for name in population.losses}
    caps = {"raw": NO_CAP}
    caps["capped"] = (
        cap_from_baseline(population.loss_f[rows])
        if population.is_regression
        else NO_CAP
    )
    for kind, cap in caps.items():
        loss_f, losses = cap.apply(population.loss_f), cap.apply(population.losses)
        for name, record in records.items():
            gap = losses[name].to_numpy() - loss_f
            # a candidate that is F again differs by rounding
            gap[np.abs(gap) < 1e-12] = 0
            for question, w in ((OVERALL, None), (REGION, population.weights)):
                truth = float(np.average(gap, weights=w))
                found = mean_contrast(
                    gap[rows], np.zeros(n), None if w is None else w[rows]
                )
                is_covered = found.low <= truth <= found.high
                if question == REGION and not is_weighted:
                    is_covered = np.nan
                record[f"{kind} {question}"] = is_covered
                record[f"truth {question}"] = truth
    own = [
        p_value(mean_contrast(losses[c].to_numpy()[rows], loss_f[rows])) for c in losses
    ]
    t_test = dict(zip(losses, holm_adjusted(np.array(own)), strict=True))
    answers = answer_questions(
        losses.iloc[rows],
        ComparedUnits(
            loss_f=loss_f[rows],
            weights=weights,
            refits=cap.apply(population.refits).iloc[rows],
        ),
    )
    for answer in answers.to_dict("records"):
        records[answer["candidate"]][f"verdict {answer['question']}"] = answer[
            "verdict"
        ]
    for name, record in records.items():
        gap = (losses[name].to_numpy() - loss_f)[rows].mean()
        record["t test"] = t_test[name] < 0.05 and gap < 0
    return list(records.values())


def judge_records(records):
    """Return coverage, power and false claims of all draws of a population, nested."""
    table = pd.DataFrame(records)
    found = {}
    for question in (OVERALL, REGION):
        for kind in ("raw", "capped"):
            by_model = table.groupby("model")[f"{kind} {question}"].mean()
            found[f"{question}, {kind}"] = {
                "mean": by_model.mean(),
                "least": by_model.min(),
                "most": by_model.max(),
            }
    is_gain = {q: table[f"truth {q}"] < -1e-9 for q in (OVERALL, REGION)}
    is_shown = {q: table[f"verdict {q}"] == "better" for q in (OVERALL, REGION)}
    is_false = pd.Series(False, index=table.index)
    is_found = pd.Series(False, index=table.index)
    for q in (OVERALL, REGION):
        is_worse = table[f"verdict {q}"] == "worse"
        is_false |= (is_shown[q] & ~is_gain[q]) | (is_worse & is_gain[q])
        is_found |= is_gain[q] & is_shown[q]
    any_gain = is_gain[OVERALL] | is_gain[REGION]
    t_false = table["t test"] & ~is_gain[OVERALL]
    shares = {
        "t test": table.loc[any_gain, "t test"].mean(),
        "overall": is_shown[OVERALL][is_gain[OVERALL]].mean(),
        "where F fails": is_shown[REGION][is_gain[REGION]].mean(),
        "any": is_found[any_gain].mean(),
        "draws with a false claim": is_false.groupby(table["draw"]).max().mean(),
        "the same, t test": t_false.groupby(table["draw"]).max().mean(),
    }
    return found | {name: {"share": share} for name, share in shares.items()}


def load_populations(_, settings, folder):
    """Return the populations, and the stream that samples of them are drawn from."""
    rng = np.random.default_rng(settings.seed)
    if folder is None:
        # all of them before any sample is drawn
        return [simulated(name, rng) for name in SIMULATIONS], rng
    tables = [
        from_table(name, folder, settings.seed + TABLES.index(name))
        for name in settings.tables
    ]
    return tables, rng


def judge_populations(settings, loaded, *, populations):
    """Return what is found on all populations."""
    drawn_from, rng = loaded
    rows = []
    for population in drawn_from:
        for n in SIZES:
            records = []
            for draw in range(settings.draws):
                for record in draw_sample(population, n, rng):
                    records.append({"draw": draw, **record})
            labels = {"population": population.name, "n": n}
            rows += flat_rows(judge_records(records), "figure", "over models", **labels)
    return rows


STUDIES = (
    Study(
        name="coverage-tails",
        title="Whether intervals hold where errors have tails, and what claims find and get wrong",
        group="claims",
        settings=TailSettings(draws=300),
        cells=grid(populations=("all",)),
        load=load_populations,
        names="populations",
        compute=judge_populations,
        summarize=summarize_means("population", "n", "figure", columns="over models"),
        small={"draws": 2},
    ),
)
