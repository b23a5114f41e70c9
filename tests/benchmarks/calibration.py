"""Does the calibration of kappa keep its promise? Training rows against the certificate.

    hardsynth generate bundled -o SUITE --folds 2
    python tests/benchmarks/calibration.py SUITE
    python tests/benchmarks/calibration.py --cost bundled/toy bundled/titanic

Printed per task of a suite: the kappa of each fold; how many folds' augmented rows passed on the
training rows; z2, tau and label support at the chosen kappa there (median over folds, ``+`` where
at least half of the folds pass), and what the certificate found for augmented rows of the test
folds (labels: of synthetic rows, where there are any). Then, per check, in how many tasks the two
agree, where both could be measured. With ``--cost``: seconds of calibration over those of
making the fold. One thread.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from amlb_ext.core.config import build_config
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.split import split_task
from amlb_ext.sources import open_specs
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity import read_certificates
from amlb_ext.validity.calibration import calibrate

#: measure -> its name in a certificate, and when it passes on the training rows
CHECKS = {
    "z2": ("ga: z2", lambda value: value <= 1),
    "tau": ("ga: tau", lambda value: value >= 0.8),
    "label_support": ("label support", None),
}


def promised(calibrations, name, passes):
    """Median over folds, and whether at least half of the measured folds pass; or None."""
    rungs = [c["rungs"][-1] for c in calibrations if c["rungs"]]
    rungs = [rung for rung in rungs if rung[name] is not None]
    if not rungs:
        return None, None
    if passes is None:
        good = [name.replace("_", " ") not in rung["why"] for rung in rungs]
    else:
        good = [passes(rung[name]) for rung in rungs]
    return float(np.median([rung[name] for rung in rungs])), bool(np.mean(good) >= 0.5)


def cell(value, passed):
    return "none" if value is None else f"{value:.2f}{'+' if passed else '-'}"


def promises(directory):
    suite = SuiteFiles.load(directory)
    certificates = read_certificates(suite)
    agree = {name: [] for name in (*CHECKS, "z2 and tau")}
    heads = [f"{name} {where}" for name in CHECKS for where in ("train", "test")]
    print(
        f"{'task':<16}{'kappa by fold':<34}{'passed':<8}"
        + "".join(f"{h:<20}" for h in heads)
    )
    for task, entry in suite.tasks.items():
        summaries = [entry.folds[k].summary for k in sorted(entry.folds)]
        calibrations = [s["calibration"] for s in summaries if "calibration" in s]
        measures = {m.name: m for m in certificates[task].measures}
        kappas = ", ".join(f"{c['kappa']:g}" for c in calibrations)
        passed = f"{sum(c['passed'] for c in calibrations)}/{len(calibrations)}"
        cells, sides = [], {"train": [], "test": []}
        for name, (there, passes) in CHECKS.items():
            value, good = promised(calibrations, name, passes)
            m = measures.get(there)
            known = m is not None and m.value is not None
            # fidelity is information in a certificate, so the limit is that of the calibration
            holds = known and (passes(m.value) if passes else m.passed)
            cells += [cell(value, good), cell(m.value if known else None, holds)]
            if value is not None and known:
                agree[name].append(good == holds)
                if passes is not None:
                    sides["train"].append(good)
                    sides["test"].append(holds)
        if len(sides["train"]) == 2:
            agree["z2 and tau"].append(all(sides["train"]) == all(sides["test"]))
        print(f"{task:<16}{kappas:<34}{passed:<8}" + "".join(f"{c:<20}" for c in cells))
    for name, same in agree.items():
        print(f"{name}: the same on both sides in {sum(same)} of {len(same)} tasks")


def cost(specs, folds):
    config = build_config({"split": {"folds": folds}})
    for ref in open_specs(specs, config.source):
        task = split_task(ref.load(), config.split, config.seed)
        start = time.perf_counter()
        [found] = calibrate([task], 0, config)
        middle = time.perf_counter()
        search = config.search.model_copy(update={"kappa": found.kappa})
        harden_fold(task, 0, config.model_copy(update={"search": search}))
        own, rest = middle - start, time.perf_counter() - middle
        print(
            f"{task.name:<16}{len(task):>6} rows, {len(found.rungs)} rungs: calibration "
            f"{own:.1f} s, the fold {rest:.1f} s, ratio {own / rest:.2f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suite", nargs="?", help="folder of a certified suite")
    parser.add_argument("--cost", nargs="+", metavar="SPEC", help="sources to time on")
    parser.add_argument("--folds", type=int, default=2)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.suite:
            promises(arguments.suite)
        if arguments.cost:
            cost(arguments.cost, arguments.folds)


if __name__ == "__main__":
    main()
