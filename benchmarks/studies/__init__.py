"""Studies: the papers' tables and figures beside ours, and our own experiments.

Run from a checkout: ``python -m benchmarks.studies`` lists them, ``python -m benchmarks.studies
table-a1`` runs one. Each is a grid of cells on one engine (``engine``): a cell is a pure function
from settings and labels to rows of numbers, finished cells stand in ``cells.csv``, and a summary
makes tables and pictures of them, which ``page`` writes.

``paper`` the paper behind ``generate`` · ``osyn`` that behind ``estimate`` · ``swarms`` that behind
the swarm of generators · ``fidelity`` which way of building a benchmark ranks models as a large
pool of rows does, as the protocols ``*.yaml`` declare it · ``coverage`` how often the intervals of
``estimate`` hold; ``benchmarks/claims`` has studies of how often claims are right. The papers'
numbers stand in ``printed/``; ``__main__`` has every study by name.
"""
