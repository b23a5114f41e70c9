"""The statistics wing: estimates and their intervals, from arrays alone.

Nothing here reads a file or knows what a suite is.

Means: ``weighted_mean`` of rows that belong together, with cluster-robust intervals, Kish's size
and Holm's adjustment; ``prediction_powered`` the same with the help of rows without labels, by the
losses that a surrogate expects.

The true error of a model: ``bounded_loss`` the losses, each with the number it cannot exceed;
``bounded_mean`` intervals for their mean, also of rows drawn class by class; ``error_estimate``
what each of these answers; ``support`` whether other rows lie where the labelled ones do.

Comparisons: ``contrasts`` of candidates with F, ``pairwise`` of candidates with each other, and
whether mean ranks of entrants differ; ``ranking`` how well two rankings agree; ``best_saving`` how
much of F's loss the best candidate saves.

Forecasts: ``window_losses`` what forecasters are compared by; ``diebold_mariano`` two of them over
time.
"""
