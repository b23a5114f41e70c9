"""Difficulty as data: how hard each row of a source is for F, and what is left to gain on it.

``files`` rows, tasks and their description · ``publication`` to OpenML, without the features
"""

from amlb_ext.difficulty.files import DifficultyFiles, write_difficulty
from amlb_ext.difficulty.publication import plan_difficulty, publish_difficulty

__all__ = [
    "DifficultyFiles",
    "plan_difficulty",
    "publish_difficulty",
    "write_difficulty",
]
