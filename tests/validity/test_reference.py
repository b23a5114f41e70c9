"""Made rows are held to every labelled row, by candidates that have not seen it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planted_suites import FEW, certify_rows, make_suite, region_table, tampered

from amlb_ext.core.unit import ROW
from amlb_ext.suite import Rows, SuiteFiles
from amlb_ext.validity import read_task
from amlb_ext.validity.candidates import named_candidates
from amlb_ext.validity.measures import Losses
from amlb_ext.validity.ranking_measures import measure_order
from amlb_ext.validity.reference import (
    Reference,
    choose_training_rows,
    join_training_rows,
    score_training_part,
)
from amlb_ext.validity.task_rows import FoldRequest

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return make_suite(
        tmp_path_factory.mktemp("reference"),
        region_table(900),
        hardness={"rule": "wrong"},
        search={"kappa": 0.0},
        split={"folds": 1},
        composition=["bad", "synthetic"],
    )


@pytest.fixture(scope="module")
def rows(suite):
    return read_task(SuiteFiles.load(suite), "planted")


@pytest.fixture(scope="module")
def certificate(rows):
    return certify_rows(rows, candidates=FEW)


def with_training(rows, change):
    """Return the task with another provenance of its training rows."""
    folds = {}
    for fold, (train, parts) in rows.folds.items():
        about = change(train.provenance)
        folds[fold] = (Rows(train.features, train.target, about), parts)
    return replace(rows, folds=folds)


# Which training rows join.


def test_training_rows_join_the_test_rows(rows, certificate):
    chosen, note = choose_training_rows(rows)
    train, parts = rows.folds[0]
    assert note == ""
    assert len(chosen) == len(train)
    total = len(train) + len(parts["full"])
    for part in ("ga", "synthetic"):
        order = certificate[f"{part}: order"]
        assert f"with that on {total} real rows" in order.text
        assert f"hold, {len(parts['full'])}, reach" in order.text
        assert order.low is not None
        assert order.high is None


def test_no_training_row_joins_that_is_tested_or_not_needed(rows):
    train, parts = rows.folds[0]
    tested = train.provenance["source_row"].to_numpy()[:100]
    about = pd.DataFrame({"parent_row": tested})
    again = parts["full"].take(np.arange(len(parts["full"])) < 100)
    other = {"full": Rows(again.features, again.target, about)}
    two_folds = replace(rows, folds={0: rows.folds[0], 1: (train, other)})
    chosen, _ = choose_training_rows(two_folds)
    assert not set(chosen["source_row"]) & set(tested)

    # test folds that hold two thirds of the rows say enough
    most = train.provenance["source_row"].to_numpy()[:500]
    about = pd.DataFrame({"parent_row": most})
    covering = {"full": Rows(train.features[:500], train.target[:500], about)}
    rest = train.take(np.arange(len(train)) >= 500)
    many = replace(rows, folds={0: rows.folds[0], 1: (rest, covering)})
    assert choose_training_rows(many) == (None, "")


def test_training_rows_judged_forward_in_time_do_not_join(rows, certificate):
    old = with_training(rows, lambda about: about[["source_row"]])
    found = certify_rows(old, candidates=FEW)
    n_tested = len(rows.folds[0][1]["full"])
    assert f"with that on {n_tested} real rows" in found["ga: order"].text
    [note] = [note for note in found.notes if "forward in time" in note]
    assert "held to the test folds alone" in note
    # the fewer the rows, the less is sure
    assert found["ga: order"].low <= certificate["ga: order"].low


def test_a_file_of_predictions_has_no_order_of_made_rows(rows):
    unknown = with_training(rows, lambda about: about[["source_row"]])
    for part in ("ga", "synthetic"):
        unknown = tampered(unknown, part, without_loss)
    settings = {**rows.settings, "baseline": {"model": "f.csv", "sha256": "0"}}
    found = certify_rows(replace(unknown, settings=settings), candidates=FEW)
    assert found["ga: order"].value is None
    assert "file of predictions" in found["ga: order"].text
    assert any("cannot be fitted again" in note for note in found.notes)
    assert found.verdict != "rank"


def without_loss(part):
    return Rows(part.features, part.target, part.provenance.assign(loss=np.nan))


# What candidates lose there.


def test_candidates_have_not_seen_the_rows_they_are_asked_about(rows):
    chosen, _ = choose_training_rows(rows)
    name = "sklearn.neighbors.KNeighborsClassifier:n_neighbors=1"
    specs = named_candidates([name], rows.kind)
    request = FoldRequest(
        specs=specs,
        size="full",
        refits=0,
        seed=0,
        has_stored_refits=True,
        whole=frozenset(specs),
    )
    losses = score_training_part(rows, chosen, 0, request)
    assert len(losses) == (chosen["oof_part"] == 0).sum() > 0
    # a nearest neighbour that had seen them would lose nothing
    assert losses.mean() > 0.02


def losses_of(G, first_row=0):
    n = len(G)
    return Losses(G, np.zeros(n), first_row + np.arange(n))


def reference_of(G):
    """A reference of test rows alone."""
    return Reference(
        columns=np.arange(G.shape[1]),
        losses=losses_of(G),
        weights=np.ones(len(G)),
        tested=len(G),
    )


def training_rows(n):
    about = {"oof_loss": 0.0, "oof_bad": True, "oof_weight": 1.0}
    return pd.DataFrame({**about, "source_row": 1000 + np.arange(n)})


def test_a_candidate_that_fails_on_a_part_leaves_all_parts():
    reference = reference_of(np.ones((20, 5)))
    broken = np.ones((10, 5))
    broken[5:, 1] = np.nan
    found = join_training_rows(reference, training_rows(10), broken, "abcde")
    assert found.columns.tolist() == [0, 2, 3, 4]
    assert found.losses.candidates.shape == (30, 4)
    assert len(found.weights) == 30
    assert found.note.startswith("b could not be fitted without each part")

    # too few are left to make a ranking: then all of them judge by the test rows alone
    broken[:, 2] = np.nan
    found = join_training_rows(reference, training_rows(10), broken, "abcde")
    assert found.columns.tolist() == [0, 1, 2, 3, 4]
    assert len(found.losses) == 20
    assert "only 3 candidates" in found.note


# Planted orders.

TRUTH = np.array([0.1, 0.2, 0.3, 0.4, 0.5])


def planted(n, seed, mean=TRUTH):
    return mean + np.random.default_rng(seed).normal(0, 0.3, (n, len(mean)))


def order_of(made, real=None, **how):
    real = losses_of(planted(2000, 0) if real is None else real)
    rng = np.random.default_rng(0)
    how = {"as_many": 100, "weights": np.ones(len(real)), **how}
    return measure_order(losses_of(made), real, "ga", rng, ROW, **how)


def test_made_rows_pass_with_the_order_of_the_reference_alone():
    passed = order_of(planted(500, 1))
    assert passed.passed
    assert passed.value >= passed.low >= passed.threshold == -0.05
    for other in (TRUTH[::-1], TRUTH[[2, 4, 0, 3, 1]]):
        assert order_of(planted(500, 1, other)).passed is False
    # two neighbours exchanged: as good as five real rows, not as good as a hundred
    nearly = planted(500, 1, TRUTH[[0, 2, 1, 3, 4]])
    assert order_of(nearly, as_many=5).passed
    assert order_of(nearly).passed is False
    # too few made rows have no order to speak of
    assert order_of(planted(2, 1)).value is None
    missing = order_of(planted(500, 1), why_not="a reason")
    assert (missing.value, missing.passed, missing.text) == (None, False, "a reason")


def test_sound_rows_are_not_shown_to_be_so_where_every_row_is_tested():
    """Nothing is left to show it: the reference is as uncertain as the test folds are."""
    real = planted(40, 0)
    assert order_of(planted(500, 1), real, as_many=40).passed is False


def test_made_rows_must_order_where_f_fails_and_over_all_rows():
    # where F fails the order is another than elsewhere
    both = np.concatenate([planted(400, 2, TRUTH[[1, 0, 2, 3, 4]]), planted(3000, 3)])
    weights = np.repeat([1.0, 0.01], [400, 3000])
    region_alone = order_of(
        planted(500, 4, TRUTH[[1, 0, 2, 3, 4]]), both, weights=weights, as_many=300
    )
    assert region_alone.passed is False
    assert "where F fails 0.9" in region_alone.text or "where F fails 1.0" in (
        region_alone.text
    )
    alike = order_of(planted(500, 4), planted(3400, 5), weights=weights, as_many=300)
    assert alike.passed
