"""Models with few trees: in these tests it matters what is written, not how good it is."""

from dataclasses import replace

from amlb_ext.hardening import oracle
from amlb_ext.validity import candidates, realism_measures

#: Trees, rounds and epochs of a light candidate. With these a zoo still ranks trees above a line
#: where trees are right, and is fitted in a fifth of the time.
LIGHT = {"n_estimators": 6, "max_iter": 5}


def shrink(patch):
    """Let oracle, region and candidates have very few trees; ``patch`` is a MonkeyPatch."""
    for module, name, fewer in (
        (oracle, "HistGradientBoostingClassifier", {"max_iter": 5}),
        (oracle, "HistGradientBoostingRegressor", {"max_iter": 5}),
        (oracle, "RandomForestClassifier", {"n_estimators": 5}),
        (oracle, "RandomForestRegressor", {"n_estimators": 5}),
    ):
        patch.setattr(module, name, _with_settings(getattr(module, name), fewer))
    _lighten_candidates(patch)


def lighten(patch, *, boosting=True):
    """Let oracle, region and candidates have fewer trees and epochs; ``patch`` is a MonkeyPatch.

    For tests of what is written, asked or compared. Only this process is patched: a test that
    compares it with another one needs the models as they are. Candidates of the kind that F is
    need as many rounds as F: ``boosting=False`` leaves them theirs.
    """
    for module, name, fewer in (
        (oracle, "HistGradientBoostingClassifier", {"max_iter": 10}),
        (oracle, "HistGradientBoostingRegressor", {"max_iter": 10}),
        (oracle, "RandomForestClassifier", {"n_estimators": 10}),
        (oracle, "RandomForestRegressor", {"n_estimators": 10}),
        (realism_measures, "ExtraTreesClassifier", {"n_estimators": 10}),
    ):
        patch.setattr(module, name, _with_settings(getattr(module, name), fewer))
    _lighten_candidates(patch, boosting=boosting)


def _lighten_candidates(patch, *, boosting=True):
    known = candidates.EstimatorBaseline

    def light_candidate(spec, *args):
        is_left_alone = not boosting and "HistGradientBoosting" in spec.path
        return known(spec if is_left_alone else _light_spec(spec), *args)

    patch.setattr(candidates, "EstimatorBaseline", light_candidate)


def _light_spec(spec):
    """Return a candidate's specification with fewer trees, rounds or epochs."""
    if not spec.path.startswith(("sklearn.ensemble.", "sklearn.neural_network.")):
        return spec
    fewer = {
        name: min(value, LIGHT[name])
        for name, value in spec.params.items()
        if name in LIGHT
    }
    return replace(spec, params={**spec.params, **fewer})


def _with_settings(known, settings):
    """Return a model class whose objects have some settings, whatever is asked for.

    Settings are named, but for a forest's trees, which may come first.
    """
    return lambda *args, **others: known(**{**others, **settings})
