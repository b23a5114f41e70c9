"""Augmented rows stand for the bad rows they came from: in number, and in doubt."""

import dataclasses

import numpy as np
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.hardening.fold import make_side
from amlb_ext.hardening.made_rows.screening import (
    CLASS_SLACK,
    judge_made_rows,
    label_passes,
)
from amlb_ext.hardening.prepare import prepare
from amlb_ext.hardening.split import split_task
from amlb_ext.sources import open_specs


def ready(spec, **layers):
    config = build_config(
        {
            "baseline": {"model": "ridge"},
            "search": {"kappa": 0.0},
            "synthesizer": {"times": 0.0},
        },
        layers,
    )
    task = next(iter(open_specs([spec], config.source))).load()
    return prepare([split_task(task, config.split, config.seed)], 0, config)


@pytest.fixture(scope="module")
def titanic():
    return ready("bundled/titanic", hardness={"rule": "wrong"})


def side_of(prepared, *, copies, tries):
    models = prepared.models
    search = models.config.search
    operators = search.operators.model_copy(update={"tries": tries})
    search = search.model_copy(update={"copies": copies, "operators": operators})
    config = models.config.model_copy(update={"search": search})
    models = dataclasses.replace(models, config=config)
    return make_side(models, prepared.test, "test").augmented.rows


def copies_of(made, real):
    """Count the made rows of each bad row."""
    return np.bincount(made.parent, minlength=len(real))[real.is_bad]


def test_every_bad_row_gets_its_copies_where_tries_allow(titanic):
    once, often = (
        copies_of(side_of(titanic, copies=4, tries=tries), titanic.test)
        for tries in (1, 8)
    )
    assert often.max() == once.max() == 4
    assert (often >= once).all()
    assert often.std() < once.std()
    assert (often == 4).mean() > 0.8 > (once == 4).mean()


def test_a_label_may_be_as_doubtful_as_where_it_came_from(titanic):
    models, test = titanic.models, titanic.test
    doubted = test.take(test.is_bad & ~test.agrees[:, 0])
    assert len(doubted) > 3
    parent = np.arange(len(doubted))
    same = judge_made_rows(models, doubted, Z=doubted.Z, y=doubted.y, parent=parent)
    assert not same.agrees.any()
    # the oracle doubts them, as it doubts the real ones
    assert label_passes(models, same, doubted).all()
    surer = dataclasses.replace(doubted, support=doubted.support + 2 * CLASS_SLACK)
    assert not label_passes(
        models, same, surer
    ).any()  # less plausible than at their origin
    flipped = dataclasses.replace(doubted, y=1 - doubted.y)
    assert not label_passes(
        models, same, flipped
    ).any()  # another label has no origin to lean on


def test_a_made_row_that_is_a_real_one_is_judged_as_that_row(titanic):
    test = titanic.test
    made = judge_made_rows(
        titanic.models, test, Z=test.Z, y=test.y, parent=np.arange(len(test))
    )
    for name in ("f", "hardness", "is_bad", "reducible", "support", "agrees"):
        np.testing.assert_allclose(
            getattr(made, name), getattr(test, name), err_msg=name
        )
    assert (made.row == -1).all()
