"""The swarm paper's tables beside ours: generators that are searched for objectives.

``choices`` (tables and settings) → ``populations`` (of which the truth is known) and ``data`` →
``methods`` (every way to make rows, by one form) → ``draw`` (one draw of Tables 1 to 3),
``adversarial`` (Algorithm 2 and its controls), ``hull`` (all mixtures of three generators) →
``run`` (all draws, resumable) → ``cells`` (beside the printed numbers, which stand in
``resources/reproduce/printed_swarms.yaml``) → ``claims`` (C1 to C8, each with a verdict) →
``page_blocks`` (as text), ``pictures``.

Public names: :data:`TABLES`, :class:`SwarmChoice`, :class:`SwarmTable`, :func:`reproduce_swarm`.

References
----------
Feng, Wang, Shi, Tsvetkov: "Data Swarms: Optimizable Generation of Synthetic Evaluation Data".
"""

from benchmarks.studies.swarms.choices import TABLES, SwarmChoice, SwarmTable
from benchmarks.studies.swarms.run import reproduce_swarm

__all__ = ["TABLES", "SwarmChoice", "SwarmTable", "reproduce_swarm"]
