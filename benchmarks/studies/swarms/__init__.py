"""The swarm paper: generators that are searched for objectives, table by table.

``choices`` (settings) → ``populations`` (of which the truth is known) and ``data`` → ``methods``
(every way to make rows, by one form) → ``draw`` (one draw of Tables 1 to 3), ``adversarial``
(Algorithm 2 and its controls), ``hull`` (all mixtures of three generators) → ``claims`` (C1 to C8,
each with a verdict) → ``tables`` (the studies, beside the numbers of ``printed/swarms.yaml``),
``pictures``.

References
----------
Feng, Wang, Shi, Tsvetkov: "Data Swarms: Optimizable Generation of Synthetic Evaluation Data".
"""
