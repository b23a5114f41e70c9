"""The studies of intervals: how often do those of ``hardsynth estimate`` hold?

``populations`` makes rows whose true error is known, each with a model trained once. ``study``
draws labelled rows from them by three designs and counts how often each interval covers the true
error. ``sampling`` asks the whole command instead: how often does it refuse rows that were not
drawn at random, and how often does what it quotes hold?
"""
