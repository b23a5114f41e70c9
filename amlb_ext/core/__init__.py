"""What every wing stands on.

``task`` the data model (Task, Column, Fold) · ``tables`` from any table to it · ``spill`` tables
on disk where they are many · ``config`` every setting, its default and its presets ·
``yaml_reader`` YAML that others wrote · ``losses`` per-row losses and scores · ``rng`` keyed
random streams · ``parallel`` units of work, in processes or on a cluster · ``errors`` what a user
sees when something is wrong · ``assets`` the project's data folders, installed or from a checkout ·
``atomic`` files that are whole or absent.
"""
