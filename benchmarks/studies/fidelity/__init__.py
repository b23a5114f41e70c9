"""The study of ranking fidelity: which way of building a benchmark ranks models as a pool does?

A row's way: ``tables`` (any labelled table) → ``draw`` (a small S, a large pool, models fitted,
references) → ``sample`` (S, what every method gets) → ``real``, ``made`` and ``designs`` (the
methods; ``registry`` names them; ``proposals``, ``corrected`` and ``mixtures`` serve the designs)
→ ``answer`` (what a method returns) → ``judge`` (an answer against a reference) → ``run`` (draws
on the engine) → ``summary`` (the declared contrasts, paired), ``page_text`` and ``plot``.
``protocol`` is what all of it is declared in.
"""

from benchmarks.studies.fidelity.protocol import Protocol, read_protocol
from benchmarks.studies.fidelity.run import run_study

__all__ = ["Protocol", "read_protocol", "run_study"]
