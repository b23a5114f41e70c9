"""Rows made from the failures of F, on either side of a fold.

``augment`` harder neighbours of the bad rows, by the genetic search · ``synthesize`` rows sampled
from a synthesizer · ``population_teacher`` failures expected in the whole population, and rows
that stand for a test fold · ``proposals`` where F's answers cost · ``screening`` which made rows
are kept.
"""
