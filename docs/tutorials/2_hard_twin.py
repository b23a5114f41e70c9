"""
A hard twin of an AMLB benchmark
================================

You develop an AutoML system and run the AutoML Benchmark (AMLB). Your benchmark is saturated: all
systems score about the same. This page makes a harder version of it, its *twin*, with the same task
names and limits. A report then says which system is better where a baseline F fails.

"""

# %%
# A benchmark
# -----------
#
# AMLB's own definitions are given by name, as in ``hardsynth harden validation -o
# validation_suite``. They need OpenML. To run without a network, this page writes a definition
# with one task.

import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer

folder = Path(tempfile.mkdtemp())

table = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0)
table[:380].to_csv(folder / "train.csv", index=False)
table[380:].to_csv(folder / "test.csv", index=False)
written = (folder / "mine.yaml").write_text(
    """
- name: cancer
  folds: 1
  dataset: {train: train.csv, test: test.csv, target: target}
"""
)

# %%
# Make it hard
# ------------
#
# In a terminal you type ``hardsynth harden mine.yaml -o suite``. Here a small function runs the
# command and shows its output. The additional flags make fewer rows than you would want, so that
# this page builds in seconds.

import shlex
import subprocess
import sys


def hardsynth(command):
    """Run a hardsynth command in the folder, and print its output."""
    words = [sys.executable, "-m", "amlb_ext", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(done.stdout if done.returncode < 2 else done.stderr)


hardsynth(
    "harden mine.yaml -o suite --baseline logistic"
    " --kappa 0 --copies 1 --times 1 --synthesizer local --no-train-hard -j 1"
)

# %%
# The table counts the task's test rows, those on which F fails (*bad*) and the rows that were
# made from them, and gives F's score on each. Below it stands the verdict: what the task may be
# used for (:doc:`/explanation/verdicts`). The last line says how to run the suite.
#
# Run AMLB on it
# --------------
#
# ``hardsynth run`` uses your AMLB checkout, or clones the pinned release, and runs any of its
# frameworks:
#
# .. code-block:: console
#
#    $ hardsynth run flaml 1h8c -u suite -b mine_hard+hardsynth_mine
#
# That takes hours and needs a network. The suite also contains three small frameworks: F, F
# fitted on other rows (the null control), and a candidate to try things out with. ``hardsynth
# score`` fits them without AMLB and writes results in AMLB's format.

hardsynth("score suite --results results")

# %%
# The answer
# ----------
#
# ``--results`` takes any number of AMLB's output folders.

hardsynth("report suite --results results")

# %%
# F fails on only a few of the 189 test rows. That is too few to claim anything *where F fails*,
# and the report says so. The full report is the page ``suite/hardsynth/report.html``. Python
# gives the same numbers as data frames:

import hardsynth as hs

suite = hs.Suite.load(folder / "suite")
contrasts = suite.contrasts(folder / "results")
contrasts[["task", "framework", "where", "difference", "low", "high", "verdict"]]

# %%
# This plot shows the difference from F with its interval. Left of the line is better.

import matplotlib.pyplot as plt

whole = contrasts[contrasts["where"] == "all rows"]
figure, axes = plt.subplots(figsize=(6, 2), layout="constrained")
middle = whole["difference"]
axes.errorbar(
    middle,
    whole["framework"],
    xerr=[middle - whole["low"], whole["high"] - middle],
    fmt="o",
    capsize=4,
)
axes.axvline(0, color="grey", linewidth=1)
axes.set_ylim(-0.5, len(whole) - 0.5)
axes.set_xlabel("Brier loss minus that of F, all test rows")
plt.show()

# %%
# How to read it
# --------------
#
# * ``all rows`` is the original's untouched test fold. Decide on it.
# * ``region`` is where F fails. It tells you where a change comes from.
# * ``HardsynthNull`` is F fitted on other rows. Whatever it seems to gain is luck, and the report
#   takes that into account.
#
# Where to go on
# --------------
#
# * :doc:`/how-to/harden`: names, folds and metrics of the twin, and how to use results that you
#   already have.
# * :doc:`/how-to/automl_systems`: which systems have been run, and what to do with one that
#   fails.
# * :doc:`/reference/report`: every term and number in the report.
