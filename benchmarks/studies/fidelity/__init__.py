"""The study of ranking fidelity: which way of building a benchmark ranks models as a pool does?

A row's way: ``tables`` (any labelled table) → ``draw`` (a small S, a large pool, models fitted,
references) → ``sample`` (S, what every method gets) → ``real``, ``made``, ``designs`` and
``composed`` (the methods; ``proposals``, ``swarm_proposal``, ``corrected`` and ``mixtures`` serve
the designs) → ``answer`` (what a method says, against a reference) → ``study`` (draws as cells) →
``summary`` (the declared contrasts, paired). ``protocol`` is what all of it is declared in.
"""
