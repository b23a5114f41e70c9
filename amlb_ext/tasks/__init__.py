"""Weird tasks: a forest on the raw columns is near chance, a little thought solves them.

==============  ==========================================================================
``record``      what a task is (:class:`WeirdTask`) and what one fold of it is (:class:`Draw`)
``shapes``      points on the outline of a shape, among noise
``patches``     nine patches of an image, shuffled
``digits``      26 labelled pictures beside thousands without a label
``drop4``       who wins four in a row, from the moves
``chess``       who wins a game of chess, from a PGN file of the user's
``catalogue``   all of them by name, and how a fold is drawn
==============  ==========================================================================

The tasks follow WeirdML (H. T. Ihle, https://htihle.github.io/weirdml.html) in form, size and
labels. Its data are not published: these are made, or cut from what scikit-learn carries, and
say so. This wing makes data and knows nothing of models.
"""

from amlb_ext.tasks.catalogue import (
    TASKS,
    draw_fold,
    find_task,
    select_tasks,
    with_data_files,
)
from amlb_ext.tasks.record import Draw, Rows, WeirdTask

__all__ = [
    "TASKS",
    "Draw",
    "Rows",
    "WeirdTask",
    "draw_fold",
    "find_task",
    "select_tasks",
    "with_data_files",
]
