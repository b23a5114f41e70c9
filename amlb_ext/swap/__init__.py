"""Before G replaces F: who is harmed, who gains, and what to do.

contrast → foresee → harm → bound, words, segments, flips, remedy, rows_needed → answer
"""
