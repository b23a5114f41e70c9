"""Experiments: two papers' tables beside ours, and our own study of ranking fidelity.

``engine`` repeats whatever is repeated: keyed, resumable, on several processes · ``paper`` the
tables and figures of the paper behind ``generate``, with the reading taken of every ambiguity
(``docs/evidence/readings.md``) · ``osyn`` those of the paper behind ``estimate`` · ``fidelity``
which way of building a benchmark ranks models as a large pool of rows does · ``page`` papers'
tables as a page · ``reproduce`` the door: from an experiment's name to its files.

In ``paper``: ``readings`` → ``data`` (its data sets, or what stands in for them) → ``settings``
(Table 2, row by row) → ``chain`` (one split: F, bad rows, made rows, F and G on each) → ``run``
(all splits) → ``cells`` (mean ± std beside the printed number) → ``figures``, ``certificates``.
The printed numbers stand in ``resources/reproduce/printed.yaml``.

Public names: :data:`EXPERIMENTS`, :func:`reproduce`.
"""

from __future__ import annotations

from amlb_ext.experiments.paper.settings import EXPERIMENTS
from amlb_ext.experiments.reproduce import reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
