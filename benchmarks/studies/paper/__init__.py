"""The paper behind ``generate``: its tables and figures.

``data`` (what one may set, and the data sets, or what stands in for them) → ``settings`` (Table 2,
row by row) → ``chain`` (one split: F, bad rows, made rows, F and G on each) → ``tables`` (the
studies, beside the printed numbers), ``figures``, ``certificates``.
"""
