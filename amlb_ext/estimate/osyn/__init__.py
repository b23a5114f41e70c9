"""OSYN, the seed paper's lower bound of the true error from labelled rows and a generator.

``regions`` the cells around labelled rows, and generated rows counted by cell → ``bound`` Theorem
1, Algorithm 1 and the closed form to which it converges → ``run`` both on the rows at hand, and a
sweep over all settings, to look at only.
"""
