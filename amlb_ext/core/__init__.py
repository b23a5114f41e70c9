"""What every wing stands on.

=================  =========================================================================
``task``           the data model: Task, Column, Fold
``tables``         from any table to a task; with ``numbers`` and ``missing``
``equal_rows``     which rows of tables have the same values
``spill``          tables on disk where they are many
``config``         every setting and its default; with ``presets``
``errors``         what a user sees when something is wrong
``display``        numbers and tables for people
``redact``         secrets hidden before a text is shown
``progress``       what a unit of work is doing, for a progress bar
``rng``            random streams, keyed and never shared
``files``          files that are whole or absent; with ``parquet``
``paths``          whether a path that a user typed leads anywhere
``locks``          one process at a time
``json_values``    what numpy and pandas hold, for JSON
``yaml_reader``    YAML that others wrote
``estimators``     models that a file of somebody else may name
``parallel``       units of work, in processes or on a cluster
``row_losses``     losses of single rows
``assets``         the project's data folders, installed or in a checkout
``version``        the version of this package
=================  =========================================================================
"""
