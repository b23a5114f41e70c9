"""Models with few trees: in these tests it matters what is written, not how good it is."""

from amlb_ext.hardening import oracle, weights


def shrink(patch):
    """Let the oracle and the region of failures have few trees; ``patch`` is a MonkeyPatch."""

    def fewer_trees(known, fewer):
        return lambda *args, **settings: known(**{**settings, **fewer})

    for module, name, fewer in (
        (oracle, "HistGradientBoostingClassifier", {"max_iter": 5}),
        (oracle, "HistGradientBoostingRegressor", {"max_iter": 5}),
        (oracle, "RandomForestClassifier", {"n_estimators": 5}),
        (oracle, "RandomForestRegressor", {"n_estimators": 5}),
        (weights, "RandomForestClassifier", {"n_estimators": 30}),
    ):
        patch.setattr(module, name, fewer_trees(getattr(module, name), fewer))
