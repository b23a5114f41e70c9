"""
A hard twin of an AMLB benchmark
================================

You develop an AutoML system and run the AutoML Benchmark (AMLB). Your benchmark is saturated: all
systems score alike. Here its tasks become hard ones, with the same names and limits, and a report
says which system is better where a baseline F fails.

"""

# %%
# A benchmark
# -----------
#
# AMLB's own definitions work by name (``hardsynth harden validation -o validation_suite``) and need
# OpenML. To run without a network, this page writes a definition of one task with two files.

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
# This is what you type in a terminal as ``hardsynth harden mine.yaml -o suite ...``. Here a small
# function runs the command and prints what it prints. The last flags make fewer rows than you
# would, so that the page is built in seconds.

import shlex
import subprocess
import sys


def hardsynth(command):
    """Run a command of hardsynth in the folder, and print what it prints."""
    words = [sys.executable, "-m", "amlb_ext", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(done.stdout if done.returncode < 2 else done.stderr)


hardsynth(
    "harden mine.yaml -o suite --baseline logistic"
    " --kappa 0 --copies 1 --times 1 --synthesizer local --no-train-hard -j 1"
)

# %%
# The table counts, for the task, the test rows on which F fails (*bad*) and the rows that were made
# of them, with F's score on each. Then comes the verdict: what the task may be used for
# (:doc:`/explanation/verdicts`). The last line says how to run it.
#
# Run AMLB on it
# --------------
#
# ``hardsynth run`` finds your AMLB checkout, or clones the pinned release, and runs any of its
# frameworks:
#
# .. code-block:: console
#
#    $ hardsynth run flaml 1h8c -u suite -b mine_hard+hardsynth_mine
#
# That takes hours and a network. The suite brings three small frameworks of its own, which
# ``hardsynth score`` fits without AMLB, in AMLB's format: F again, F fitted on other rows, and a
# candidate to try the machinery with.

hardsynth("score suite --results results")

# %%
# The answer
# ----------
#
# Any number of AMLB's output folders may follow ``--results``.

hardsynth("report suite --results results")

# %%
# F fails on a few of the 189 test rows only. That is too little to claim anything *where F fails*,
# and the report says so. Its page ``suite/hardsynth/report.html`` has everything; in Python, the
# same as data frames:

import hardsynth as hs

suite = hs.Suite.load(folder / "suite")
contrasts = suite.contrasts(folder / "results")
contrasts[["task", "framework", "where", "difference", "low", "high", "verdict"]]

# %%
# A picture of it: the difference from F with its interval, left of the line is better.

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
# * ``all rows`` is the untouched test fold of the original: decide on it.
# * ``region`` is where F fails: read it for where a change comes from.
# * ``HardsynthNull`` is F again, on other rows. What it seems to win is luck, and the report counts
#   that.
#
# Where to go on
# --------------
#
# * :doc:`/how-to/harden`: names, folds and metrics of the twin, and results you already have.
# * :doc:`/how-to/automl_systems`: which systems were run, and what to do with one that fails.
# * :doc:`/reference/report`: every word and number of the report.
