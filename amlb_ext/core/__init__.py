"""What every wing stands on.

``task`` the data model (Task, Column, Fold) · ``config`` every setting, its default and its
presets · ``losses`` per-row losses and scores · ``rng`` keyed random streams · ``parallel``
folds on several processes · ``errors`` what a user sees when something is wrong ·
``assets`` the project's data folders, installed or from a checkout · ``atomic`` files that
are whole or absent.
"""
