"""The mixture of the main test file is settled on the training rows alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.task import Fold, Origin
from amlb_ext.hardening.fold import check_several_targets, harden_fold, harden_group
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.hardening.weights import REPEATS, Composition, Region
from amlb_ext.pipeline.folds import harden_calibrated
from amlb_ext.sources.table import Table
from amlb_ext.sources.targets import to_tasks
from amlb_ext.suite.copy_counts import population_rows
from amlb_ext.validity.composition import MixtureTrial, choose_composition
from amlb_ext.validity.held_out_parts import HeldOutCandidates

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")

LIGHT = {
    "baseline": {"model": "ridge"},
    "search": {"copies": 0},
    "synthesizer": {"name": "local", "times": 1.0},
    "train_hard": False,
    "hardness": {"rule": "paper"},
}


def bent_task(n_train=240, n_test=80, seed=0):
    """Return a regression that a line misses in one corner, with one fold."""
    rng = np.random.default_rng(seed)
    x = rng.random((n_train + n_test, 3))
    y = x[:, 0] + 4 * (x[:, 1] > 0.7) * x[:, 2] + 0.05 * rng.standard_normal(len(x))
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(y=y)
    [task] = to_tasks(
        Table("bent", frame),
        name="bent",
        targets=["y"],
        kind=None,
        origin=Origin("bent"),
    )
    rows = np.arange(n_train + n_test)
    return task.with_folds((Fold(rows[:n_train], rows[n_train:]),))


def choose(task, settings=None):
    config = build_config({**LIGHT, **(settings or {})})
    cross = cross_fit([task], 0, config)
    held_out = HeldOutCandidates([task], config, cross)
    return choose_composition([task], 0, config, cross, held_out)


@pytest.fixture(scope="module")
def choice():
    return choose(bent_task())


def test_the_test_fold_has_no_say(choice):
    task = bent_task()
    target = task.target.copy()
    target.iloc[task.folds[0].test] = 0.5
    altered = dataclasses.replace(task, target=target)
    assert choose(altered) == choice


def test_the_whole_fold_comes_first_and_is_what_is_left_where_none_is_shown_better(
    choice,
):
    assert choice.options[0].composition.is_whole
    assert choice.options[-1].composition.parts == ("bad",)
    chosen = choice.options[choice.chosen]
    assert chosen.composition.parts == choice.composition.parts
    assert choice.to_json()["tau"]["chosen"] == chosen.tau
    assert set(choice.to_json()["options"][0]) >= {"tau", "tau_all"}
    assert choice.composition.is_whole == (choice.chosen == 0)


def trial_of(leads, everywhere=None, splits=40, share=0.25, seed=0):
    """A trial of the whole fold and mixtures whose taus lead it by so much on average."""
    rng = np.random.default_rng(seed)

    def taus(means):
        noise = rng.normal(0, 0.1, (splits, 1 + len(means)))
        return 0.5 + np.r_[0.0, means] + noise

    compositions = [Composition(parts=("weighted",), region_share=0.0, made_share=0.0)]
    compositions += [Composition(parts=("weighted",))] * len(leads)
    return MixtureTrial(
        compositions=tuple(compositions),
        region=taus(leads),
        everywhere=taus(np.zeros(len(leads)) if everywhere is None else everywhere),
        share=share,
    )


def test_a_mixture_must_be_shown_to_be_better():
    assert trial_of([0.0, 0.0]).better_than_whole() == 0
    assert trial_of([0.3, 0.5], everywhere=[0.2, 0.2]).better_than_whole() == 2
    # worse over all rows, or not shown to be no worse
    assert trial_of([0.3, 0.5], everywhere=[0.2, -0.2]).better_than_whole() == 1
    assert trial_of([0.5], everywhere=[-0.04]).better_than_whole() == 0
    # a lead that 40 independent folds would show, and folds of the same rows do not
    assert trial_of([0.07], everywhere=[0.3]).better_than_whole() == 0
    assert trial_of([0.07], everywhere=[0.3], share=0.0).better_than_whole() == 1


def test_of_mixtures_that_are_no_better_few_are_taken():
    taken = [
        trial_of(np.zeros(6), everywhere=np.full(6, 0.3), share=0.0, seed=seed)
        for seed in range(300)
    ]
    # one-sided 5 %, all six together
    assert np.mean([trial.better_than_whole() > 0 for trial in taken]) < 0.08


def test_the_region_of_the_mixture_is_that_of_the_test_rows(monkeypatch):
    fits = []
    fit = Region.fit
    monkeypatch.setattr(
        Region, "fit", lambda region, *args: fits.append(0) or fit(region, *args)
    )
    config = build_config({**LIGHT, "search": {"copies": 0, "kappa": 0.1}})
    harden_calibrated((bent_task(),), 0, config)
    assert len(fits) == 1


@pytest.mark.parametrize("column", ["time", "group"])
def test_rows_with_an_order_have_a_mixture_too(column):
    task = bent_task()
    rng = np.random.default_rng(5)
    values = rng.integers(0, 40, len(task.features))
    if column == "time":
        values = np.arange(len(task.features))
    order = RowOrder(**{column: values})
    choice = choose(dataclasses.replace(task, order=order))
    assert len(choice.options) == 7


def test_parts_that_the_user_names_are_taken_as_they_stand():
    choice = choose(bent_task(), {"composition": ("bad", "ga")})
    assert choice.composition.parts == ("bad", "ga")
    assert not choice.options


def test_too_few_failures_leave_the_whole_fold_and_say_why():
    choice = choose(bent_task(), {"hardness": {"rule": "absolute", "alpha": 0.9}})
    assert choice.composition.is_whole
    assert "not enough rows" in choice.composition.reason


def test_a_file_of_predictions_says_that_nothing_was_compared(tmp_path):
    task = bent_task()
    path = tmp_path / "f.csv"
    rows = pd.DataFrame({"row": task.row_ids, "prediction": task.target.to_numpy()})
    rows.to_csv(path, index=False)
    choice = choose(task, {"baseline": {"model": str(path)}})
    assert choice.composition.is_whole
    assert "file of predictions" in choice.composition.reason


@pytest.mark.parametrize(
    ("composition", "has_main"),
    [
        (Composition.of_parts(["auto"]), False),
        (Composition.of_parts(["weighted"]), True),
        (Composition.of_parts(["bad", "synthetic"]), True),
    ],
)
def test_no_main_part_holds_the_rows_of_the_whole_fold(composition, has_main):
    [hard] = harden_group(
        [bent_task()], 0, build_config(LIGHT), composition=composition
    )
    assert ("" in hard.parts) == has_main
    tests = [part.test.provenance for part in hard.parts.values()]
    full = hard.parts["full"].test.provenance
    assert sum(each.equals(full) for each in tests) == 1
    assert {"bad", "synthetic", "region"} <= set(hard.parts)


def test_population_rows_stand_beside_repeated_real_rows():
    task = bent_task()
    config = build_config({**LIGHT, "composition": ("weighted", "population")})
    [hard] = harden_calibrated((task,), 0, config)
    main = hard.parts[""].test
    made = population_rows(main)
    real = main.provenance[main.provenance["source_row"] >= 0]
    n_test = len(hard.parts["full"].test)
    assert len(real) == REPEATS * n_test
    assert len(made) == hard.summary["population"] == REPEATS * n_test
    # a made row lies between test rows, and is none of them
    known = set(map(tuple, task.features.to_numpy()))
    assert not known & set(map(tuple, made.features.to_numpy()))
    inside = task.features.iloc[task.folds[0].test]
    assert (made.features.to_numpy() >= inside.min().to_numpy()).all()
    assert (made.features.to_numpy() <= inside.max().to_numpy()).all()
    # rows where F is likelier to fail come more often
    times = real["source_row"].value_counts()
    full = hard.parts["full"].test.provenance.set_index("source_row")["weight"]
    heavy = full.sort_values().index[-10:]
    light = full.sort_values().index[:10]
    assert times.reindex(heavy).mean() > times.reindex(light, fill_value=0).mean()


def test_asking_for_population_rows_changes_no_other_part():
    task = bent_task()
    parts = {}
    for composition in (("bad", "synthetic"), ("weighted", "population")):
        config = build_config({**LIGHT, "composition": composition})
        parts[composition] = harden_fold(task, 0, config).parts
    first, second = parts.values()
    assert first["synthetic"].test.features.equals(second["synthetic"].test.features)
    assert not first[""].test.features.equals(second[""].test.features)


@pytest.mark.parametrize("n_made", [0, 100, 1000])
def test_real_rows_keep_their_share_beside_made_ones(n_made):
    composition = Composition(parts=("weighted", "population"), made_share=0.5)
    picked = composition.pick_real_rows(
        np.linspace(0.1, 1, 400), n_made, np.random.default_rng(0)
    )
    assert 400 <= len(picked) <= 800
    if n_made == 0:
        assert len(picked) == 800


def test_equal_weights_leave_every_row_once():
    composition = Composition(parts=("weighted",), region_share=0.0, made_share=0.0)
    picked = composition.pick_real_rows(np.ones(9), 0, np.random.default_rng(0))
    assert picked.tolist() == list(range(9))


def test_population_rows_are_refused_for_several_targets():
    config = build_config({**LIGHT, "composition": ("weighted", "population")})
    with pytest.raises(ConfigError, match="single target"):
        check_several_targets(config)
