"""A swarm of generators: mixtures of tuned copies of one VAE, searched for rows that are hard.

``synthesizer`` the whole of it, by the contract of every synthesizer · ``space`` the first
generators, and coefficients to rows · ``particles`` the searches · ``objectives`` who answers rows,
what is right, and what is searched for · ``arena`` many generators in one predict.

References
----------
Feng, Wang, Shi, Tsvetkov: "Data Swarms: Optimizable Generation of Synthetic Evaluation Data".
"""
