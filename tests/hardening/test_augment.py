"""Augmented rows stand for the bad rows they came from: in number, and in doubt."""

import dataclasses

import numpy as np
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.hardening.augment import make_side
from amlb_ext.hardening.judged_rows import (
    CLASS_SLACK,
    Failures,
    MadeRows,
    failures,
    judge,
    label_passes,
)
from amlb_ext.hardening.prepare import prepare
from amlb_ext.hardening.split import split_task
from amlb_ext.sources import open_specs


def ready(spec, **layers):
    config = build_config(
        {"baseline": {"model": "ridge"}, "search": {"kappa": 0.0}, "synthesizer": {"times": 0.0}},
        layers,
    )
    task = next(iter(open_specs([spec], config.source))).load()
    return prepare(split_task(task, config.split, config.seed), 0, config)


@pytest.fixture(scope="module")
def titanic():
    return ready("bundled/titanic", hardness={"rule": "wrong"})


def side_of(prepared, **search):
    models = prepared.models
    config = models.config.model_copy(
        update={"search": models.config.search.model_copy(update=search)}
    )
    test = prepared.test
    models = dataclasses.replace(models, config=config)
    return make_side(models, failures(test), test.Z, test.y, "test").augmented


def counts(made, bad):
    return np.bincount(made.parent, minlength=bad)


def test_every_bad_row_gets_its_copies_where_tries_allow(titanic):
    bad = int(titanic.test.bad.sum())
    once, often = (counts(side_of(titanic, copies=4, tries=tries), bad) for tries in (1, 8))
    assert often.max() == once.max() == 4
    assert (often >= once).all()
    assert often.std() < once.std()
    assert (often == 4).mean() > 0.8 > (once == 4).mean()


def test_the_first_try_is_kept_and_nothing_is_made_twice(titanic):
    once, often = (side_of(titanic, copies=3, tries=tries) for tries in (1, 4))
    np.testing.assert_array_equal(often.Z[: len(once)], once.Z)
    rows = np.where(np.isnan(often.Z), -9.0, often.Z)  # features alone, whatever the target
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_a_label_may_be_as_doubtful_as_where_it_came_from(titanic):
    models, test = titanic.models, titanic.test
    doubted = np.flatnonzero(test.bad & ~test.agrees)
    assert len(doubted) > 3
    Z, y = test.Z[doubted], test.y[doubted]
    of = Failures(Z, y, test.support[doubted])
    same = judge(models, Z, y, np.arange(len(y)))
    assert not same.agrees.any()
    # the oracle doubts them, as it doubts the real ones
    assert label_passes(models, same, of).all()
    surer = Failures(Z, y, test.support[doubted] + 2 * CLASS_SLACK)
    assert not label_passes(models, same, surer).any()  # less plausible than at their origin
    flipped = Failures(Z, 1 - y, test.support[doubted])
    assert not label_passes(models, same, flipped).any()  # another label has no origin to lean on


def test_failures_ask_the_oracle(titanic):
    test = titanic.test
    found = Failures.of(titanic.models, test.Z[test.bad], test.y[test.bad])
    np.testing.assert_allclose(found.support, failures(test).support)
    assert len(found) == int(test.bad.sum())


def test_parts_merge_in_order(titanic):
    test = titanic.test
    rows = judge(titanic.models, test.Z[:5], test.y[:5], np.arange(5))
    both = MadeRows.merge([rows.take(np.array([3])), rows.take(np.array([0, 1]))])
    assert both.parent.tolist() == [3, 0, 1]
