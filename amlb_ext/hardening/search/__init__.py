"""The genetic search for harder neighbours of bad points (paper, section 4.3 and Algorithm 1).

``domain`` where the search may go, and what it maximises · ``operators`` selection, crossover,
mutation and repair, and their random numbers · ``search`` the algorithm, all points at once ·
``deap_engine`` the same with DEAP, one point at a time: the reference that the tests hold
``search`` to.
"""

from amlb_ext.hardening.search.domain import Domain, learn_domain
from amlb_ext.hardening.search.search import genetic_search

__all__ = ["Domain", "genetic_search", "learn_domain"]
