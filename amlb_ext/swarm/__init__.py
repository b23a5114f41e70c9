"""The swarm wing: a population of generators searched for hard rows, and what that is worth.

``space`` coefficients to rows · ``initial`` the first generators · ``particles`` and
``cma_search`` the searches · ``takers`` the models that are tested · ``labels`` who says what is
right, and where real rows are · ``objectives`` what is searched for, by the paper's letter and
honestly · ``evaluate`` many generators in one predict · ``roles`` which real rows serve for what ·
``prepare`` a fold ready to be searched ·
``audit`` what a generator is worth on fresh and on real rows · ``baselines`` what a swarm must
beat · ``search`` one search · ``run`` sources in, suite out · ``page`` the page.
"""
