"""The swarm paper: generators that are searched for objectives, table by table.

``choices`` (settings) → ``populations`` (tables of which the truth is known, and others) →
``methods`` (every way to make rows, by one form) → ``draw`` (one draw of Tables 1 to 3),
``adversarial`` (Algorithm 2 and its controls), ``hull`` (all mixtures of three generators, and
pictures) → ``tables`` (the studies, beside the numbers of ``printed/swarms.yaml``, and the claims).

References
----------
Feng, Wang, Shi, Tsvetkov: "Data Swarms: Optimizable Generation of Synthetic Evaluation Data".
"""
