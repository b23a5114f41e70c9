"""The paper behind ``estimate``: OSYN, a lower bound of the true error, table by table.

``case`` (settings, models, one split: labelled rows, a generator) → ``arms`` (every estimate of one
model) → ``repeat`` (one repetition of a table), ``cost`` (its time) → ``tables`` (the studies,
beside the numbers of ``printed/osyn.yaml``).

References
----------
Hoang Thanh, Nguyen, The Tran, Than: "Using Synthetic Data to estimate the True Error is
theoretically and practically doable".
"""
