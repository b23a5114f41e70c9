"""Does the interval that ``estimate`` quotes for other losses than 0-1 hold on real tables?

    python tests/benchmarks/quoted.py [--data DIR] [--draws 1000]

The rule (t from 100 rows and 25 g^2 on, g the skewness of the losses; Hall's from 200 rows and
15 g^2 on; else betting) was chosen on the simulated populations of ``benchmarks.studies coverage``.
Here it is tried on others: squared errors of a good model (a true error of .0009 of the squared
range) with noise from normal to heavy-tailed; and, with ``--data``, rows of BANK, ADULT and BIKE
that a model was not fitted on *are* the population, drawn with replacement. Per population and n:
skewness, coverage of t, of Hall's and of what is quoted at .95, share of draws that quote t or
Hall's, width of what is quoted over empirical Bernstein's. One thread, 15 minutes.
"""

import argparse
from itertools import chain
from pathlib import Path

import numpy as np
from scipy.stats import skew
from threadpoolctl import threadpool_limits

from amlb_ext.stats.bounded_loss import LOSSES, absolute_loss, squared_loss
from amlb_ext.stats.bounded_mean import (
    betting_interval,
    empirical_bernstein,
    hall_interval,
    interval_for_skewness,
    t_interval,
)
from benchmarks.studies.files import load_uci
from benchmarks.studies.osyn.case import Case, Choice

SIZES = (50, 100, 200, 500, 1000, 2000)


def populations(folder):
    """Yield a name, a loss and the losses of all rows of a population."""
    for data in ("bank", "adult"):
        case = Case(load_uci(data, folder), Choice(), 0, False)
        X, y = case.model_inputs(case.Z[case.oracle]), case.y[case.oracle].astype(int)
        for model in ("LR", "RF", "GB"):
            f = case.fit_model(model).predict_proba(X)
            for loss in (LOSSES["brier"], LOSSES["log"]):
                yield f"{data} {model} {loss.name}", loss, loss(y, f)
    case = Case(load_uci("bike", folder), Choice(), 0, True)
    X, y = case.model_inputs(case.Z[case.oracle]), case.y[case.oracle].astype(float)
    for model in ("Ridge", "RFR"):
        f = np.clip(case.fit_model(model).predict(X), 0, 1)
        for loss in (squared_loss(), absolute_loss()):
            yield f"bike {model} {loss.name}", loss, loss(y, f)


def noise():
    """Yield a name, a loss and the squared errors of a million rows, for six kinds of noise."""
    rng, n = np.random.default_rng(7), 1_000_000
    rare = np.where(rng.random(n) < 0.02, 8, 1)
    errors = {
        "normal": 0.03 * rng.standard_normal(n),
        "Laplace": 0.021 * rng.laplace(size=n),
        "t(5)": 0.023 * rng.standard_t(5, n),
        "t(3)": 0.017 * rng.standard_t(3, n),
        "2 % err 8 times": 0.02 * rare * rng.standard_normal(n),
    }
    for name, error in errors.items():
        yield f"{name}, squared", squared_loss(), np.minimum(error**2, 1)
    yield (
        "log-normal",
        squared_loss(),
        np.minimum(0.0005 * np.exp(rng.standard_normal(n)), 1),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    rng = np.random.default_rng(7)
    heads = f"{'t held':>8}{'Hall':>8}{'quoted':>8}{'approx':>7}{'width':>7}"
    print(f"{'population':<24}{'skew':>6}{'n':>6}{heads}")
    worst = []
    with threadpool_limits(1):
        others = populations(given.data) if given.data else ()
        for name, loss, losses in chain(noise(), others):
            truth, g = losses.mean(), skew(losses)
            for n in SIZES:
                held, halls, ours, chosen, width = [], [], [], [], []
                for _ in range(given.draws):
                    v = losses[rng.integers(0, len(losses), n)]
                    t = t_interval(v, 0.95, loss.bound)
                    wide = empirical_bernstein(v, 0.95, loss.bound)
                    name_of_one = interval_for_skewness(v)
                    chosen.append(name_of_one != "betting")
                    interval = {
                        "t": t_interval,
                        "hall": hall_interval,
                        "betting": betting_interval,
                    }[name_of_one]
                    one = interval(v, 0.95, loss.bound)
                    held.append(t.low <= truth <= t.high)
                    by_hall = hall_interval(v, 0.95, loss.bound)
                    halls.append(by_hall.low <= truth <= by_hall.high)
                    ours.append(one.low <= truth <= one.high)
                    width.append(one.width / wide.width)
                row = (
                    f"{np.mean(held):>8.3f}{np.mean(halls):>8.3f}{np.mean(ours):>8.3f}"
                )
                row += f"{np.mean(chosen):>7.2f}{np.mean(width):>7.2f}"
                print(f"{name:<24}{g:>6.2f}{n:>6}{row}", flush=True)
                worst.append(np.mean(ours))
    short = sum(
        cover < 0.95 - 2 * np.sqrt(0.95 * 0.05 / given.draws) for cover in worst
    )
    print(
        f"least coverage {min(worst):.3f}; {short} of {len(worst)} short by two standard errors"
    )


if __name__ == "__main__":
    main()
