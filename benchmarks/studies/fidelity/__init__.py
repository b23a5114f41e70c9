"""The study of ranking fidelity: which way of building a benchmark ranks models as a pool does?

A row's way: ``protocol`` (what is declared, and the tables) → ``draw`` (a small S, a large pool,
models fitted, references) → ``sample`` (S, which every method gets, and what a method says of it) →
``methods`` and ``designs`` (with the rows of ``proposals``) → ``study`` (draws as cells) →
``summary`` (the declared contrasts, paired).
"""
