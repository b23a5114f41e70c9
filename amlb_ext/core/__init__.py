"""What every wing stands on.

=================  =========================================================================
``task``           the data model: Task, Column, Fold
``windows``        origins, the rule and series left out, as used and as kept
``unit``           what is predicted, and what an evaluation counts
``tables``         from any table to a task; with ``numbers``
``frames``         tables of any kind as data frames, missing values, equal rows
``spill``          tables on disk where they are many
``config``         every setting, its default, and the presets
``checked_call``   public functions that hold their arguments to their annotations
``errors``         what a user sees when something is wrong
``display``        numbers and tables for people, without the secrets in them
``progress``       what a unit of work is doing, for a progress bar
``rng``            random streams, keyed and never shared
``files``          files that are whole or absent
``locks``          one process at a time
``parquet``        Parquet files; ``packed`` what a file may unpack to
``paths``          whether a path that a user typed leads anywhere, and what may stand in a suite
``json_values``    what numpy and pandas hold, for JSON
``yaml_reader``    YAML that others wrote
``estimators``     models that a file of somebody else may name
``parallel``       units of work, in ``processes`` or on a ``cluster``
``row_losses``     losses of single rows
``notes``          what happened in a fold, as kind, unit and counts
``assets``         the project's data folders, installed or in a checkout
``version``        the version of this package
=================  =========================================================================
"""
