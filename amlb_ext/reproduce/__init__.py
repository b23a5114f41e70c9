"""The paper's tables and figures beside ours, with the reading taken of every ambiguity.

``readings`` (of what the text leaves open) → ``data`` (its data sets, or what stands in for them) →
``settings`` (Table 2, row by row) → ``chain`` (one split: F, bad rows, made rows, F and G on each)
→ ``run`` (all splits, on several processes, resumable) → ``cells`` (mean ± std beside the printed
number) → ``figures``, ``certificates``, ``page``. The printed numbers stand in
``resources/reproduce/printed.yaml``; ``docs/readings.md`` tells of the readings. Tables of another
paper stand in :mod:`~amlb_ext.reproduce.osyn`.

Public names: :data:`EXPERIMENTS`, :func:`reproduce`.
"""

from __future__ import annotations

from amlb_ext.reproduce.reproduce import reproduce
from amlb_ext.reproduce.settings import EXPERIMENTS

__all__ = ["EXPERIMENTS", "reproduce"]
