"""The statistics wing: estimates and their intervals, from arrays alone.

Nothing here reads a file, fits a model of the project, or knows what a suite is.

``weighted_mean`` means of rows that belong together, with cluster-robust intervals; Kish's size,
Holm's adjustment · ``prediction_powered`` the same with the help of rows without labels ·
``support`` whether other rows lie where the labelled ones do.
"""
