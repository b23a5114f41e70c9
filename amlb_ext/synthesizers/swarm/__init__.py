"""A swarm of generators: mixtures of tuned copies of one VAE, searched for rows that are hard.

``synthesizer`` the whole of it, by the contract of every synthesizer · ``tuned_copies`` and
``initial`` the first generators · ``space`` coefficients to rows · ``particles`` and
``cma_search`` the searches · ``answers`` who answers rows and what is right · ``objectives`` what
is searched for, by the paper's letter and honestly · ``arena`` many generators in one predict.

References
----------
Feng, Wang, Shi, Tsvetkov: "Data Swarms: Optimizable Generation of Synthetic Evaluation Data".
"""
