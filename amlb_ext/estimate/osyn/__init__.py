"""OSYN, the seed paper's lower bound of the true error from labelled rows and a generator.

``regions`` the cells around labelled rows → ``tallies`` generated rows counted cell by cell →
``theorem`` Theorem 1 and its settings → ``bound`` Algorithm 1 and the closed form to which it
converges → ``run`` both on the rows at hand. ``explore`` sweeps over all settings, to look at only.
"""
