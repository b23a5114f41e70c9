"""Rows made from the failures of F, on either side of a fold.

``sides`` the whole of it for test and training rows · ``augment`` harder neighbours of the bad
rows, by the genetic search · ``synthesize`` rows sampled from a synthesizer ·
``population_teacher`` failures expected in the whole population · ``screening`` which made rows
are kept · ``cells`` which labels hold where the rows of a table are cells.
"""
