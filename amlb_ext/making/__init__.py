"""Windows made of those on which F fails: moved as a whole, and judged like real ones.

window_moves, window_judge → made_windows
"""
