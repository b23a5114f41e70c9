"""The seed paper's tables beside ours: OSYN, a lower bound of the true error.

``choices`` (tables and settings) → ``simulation`` (five Gaussians), ``tabular`` (ADULT, BANK,
BIKE) and ``models`` → ``case`` (split, labelled rows, generator) → ``arms`` (every estimate of one
model) → ``repeat`` (one repetition of a table), ``cost`` (its time) → ``run`` (all repetitions,
resumable) → ``cells`` (beside the printed numbers, which stand in
``resources/reproduce/printed_osyn.yaml``) → ``page_blocks`` (as text).

Public names: :data:`TABLES`, :class:`Choice`, :class:`OsynTable`, :func:`reproduce_osyn`.

References
----------
Hoang Thanh, Nguyen, The Tran, Than: "Using Synthetic Data to estimate the True Error is
theoretically and practically doable".
"""

from benchmarks.studies.osyn.choices import TABLES, Choice, OsynTable
from benchmarks.studies.osyn.run import reproduce_osyn

__all__ = ["TABLES", "Choice", "OsynTable", "reproduce_osyn"]
