"""Several targets: one K, one search and one synthesizer, with a model for each target."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import HardnessConfig, SearchConfig, build_config
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind, Origin
from amlb_ext.hardening.fold import harden_fold, harden_group
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.made_rows.screening import judge_made_rows, label_passes
from amlb_ext.hardening.prepare import prepare
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.hardening.search.domain import target_slopes
from amlb_ext.hardening.split import split_task
from amlb_ext.sources.files import to_tasks
from amlb_ext.sources.table import Table

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")

QUICK = {
    "synthesizer": {"name": "local", "times": 1},
    "baseline": {"model": "ridge"},
    "search": {"kappa": 0.1, "operators": {"population": 8, "generations": 4}},
    "split": {"folds": 1, "test_size": 0.3},
}


def frame(n=200):
    """Both targets follow the features; a fails where u is high, b where v is high."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.random((n, 3)), columns=list("uvw"))
    x["town"] = rng.choice(["n", "s"], n)
    a = x.u + x.w - 1.0 * (x.u > 0.8) + rng.normal(0, 0.02, n)
    b = np.round(10 * (x.v + x.w - 1.0 * (x.v > 0.8)) + rng.normal(0, 0.2, n))
    return x.assign(a=a, b=b)


def tasks_of(table, *targets, **layer):
    config = build_config(QUICK, layer)
    about = {"kind": None, "origin": Origin("t.csv")}
    tasks = to_tasks(Table("t.csv", table), name="t", targets=targets, **about)
    return [split_task(task, config.split, config.seed) for task in tasks], config


@pytest.fixture(scope="module")
def prepared():
    """Both targets side by side; alpha 0 calls every row bad."""
    tasks, config = tasks_of(
        frame(), "a", "b", hardness={"rule": "paper", "alpha": 0.0}
    )
    return prepare(tasks, 0, config)


@pytest.fixture(scope="module")
def three():
    """The same table hardened over all three ways of combining."""
    out = {}
    for over in ("mean", "intersection", "union"):
        tasks, config = tasks_of(
            frame(), "a", "b", hardness={"rule": "paper", "over": over, "alpha": 0.2}
        )
        out[over] = harden_group(tasks, 0, config)
    return out


@pytest.mark.parametrize("over", ["mean", "intersection", "union"])
def test_every_part_has_the_same_rows_for_every_target(three, over):
    a, b = three[over]
    assert set(a.parts) == set(b.parts) >= {"full", "bad", "region"}
    pd.testing.assert_frame_equal(a.train.features, b.train.features)
    common = ["origin", "source_row", "parent_row", "hardness", "weight"]
    for name, part in a.parts.items():
        other = b.parts[name]
        pd.testing.assert_frame_equal(part.test.features, other.test.features)
        pd.testing.assert_frame_equal(
            part.test.provenance[common], other.test.provenance[common]
        )
        if part.train is not None:
            pd.testing.assert_frame_equal(part.train.features, other.train.features)
    assert a.parts["full"].test.target.name == "a"
    assert a.summary["shared"] == {"group": "t", "targets": ["a", "b"], "over": over}


def test_the_sets_of_bad_rows_are_what_their_names_say(three, prepared):
    residuals = np.abs(prepared.test.y - prepared.test.f).T
    bad_a, bad_b = residuals >= 0.2
    expected = {
        "mean": (residuals[0] + residuals[1]) / 2 >= 0.2,
        "intersection": bad_a & bad_b,
        "union": bad_a | bad_b,
    }
    for over, (hard, _) in three.items():
        origin = hard.parts["full"].test.provenance["origin"]
        assert (origin == "bad").tolist() == expected[over].tolist(), over
    counts = [int(mask.sum()) for mask in expected.values()]
    assert counts[1] < counts[0] < counts[2], "or this table shows nothing"


def test_a_target_beside_its_double_is_that_target():
    # the mean over two equal targets is the target: same F, K, region; and, without what is drawn
    # per target (sigma2) or after it (jitter), the same augmented rows
    table = frame().assign(c=lambda t: t.a)
    still = {"search": {"operators": {"sigma2": 0.0, "jitter": 0.0}}}
    tasks, config = tasks_of(table.drop(columns="b"), "a", "c", **still)
    one, two = harden_group(tasks, 0, config)
    alone = make_task(table.drop(columns=["b", "c"]), "a", name="t")
    alone = harden_fold(split_task(alone, config.split, config.seed), 0, config)
    for part in ("full", "region", "bad", "ga"):
        want, got = alone.parts[part].test, one.parts[part].test
        assert len(want.features) > 0
        pd.testing.assert_frame_equal(got.features, want.features)
        pd.testing.assert_frame_equal(got.provenance, want.provenance)
        assert got.target.tolist() == two.parts[part].test.target.tolist()


# ---------------------------------------------------------------- K


def settle(config, f, y):
    return settle_rule(config, Kind.REGRESSION, (), y=y, f=f, t=y)


def test_targets_without_enough_failures_get_thresholds_of_their_own():
    # the first target fails often, so the customary .1 stands; of the second no residual reaches
    # .1, so its worst tenth, the ten from .09 up, sets the threshold
    f = np.column_stack([np.linspace(0, 1, 100), np.linspace(0, 0.099, 100)])
    y = np.zeros_like(f)
    rule = settle(HardnessConfig(rule="paper", over="intersection"), f, y)
    own = [rule.threshold - shift for shift in rule.shifts]
    assert [round(threshold, 6) for threshold in own] == [
        0.1,
        pytest.approx(0.09, abs=1e-3),
    ]
    assert rule.reason.startswith("intersection of 2 targets: ")
    assert rule.select(rule.hardness(y, f)).sum() == 10
    union = settle(HardnessConfig(rule="paper", over="union"), f, y)
    assert union.select(union.hardness(y, f)).sum() == 90  # of .101 .. 1


def test_each_target_has_its_own_worst_share():
    rng = np.random.default_rng(0)
    y, f = rng.random((2, 200, 2))
    rule = settle(HardnessConfig(rule="quantile", share=0.1, over="union"), f, y)
    rule = rule.worst_of(0.1, y, f)
    worst = (y - f) ** 2 >= np.sort((y - f) ** 2, axis=0)[-20]
    assert rule.select(rule.hardness(y, f)).tolist() == worst.any(axis=1).tolist()


# ---------------------------------------------------------------- the search


def test_genes_follow_the_targets_that_are_most_wrong():
    rng = np.random.default_rng(0)
    Z = rng.random((200, 2))
    domain = learn_domain(
        Z, Z, np.column_stack([Z[:, 0], -Z[:, 1]]), n_classes=0, n_categorical=0
    )  # omega = (1, 0), (0, -1)
    np.testing.assert_allclose(domain.omega, [[1, 0], [0, -1]], atol=1e-9)
    # y - f = (.3, .5): omega_1 .3 + omega_2 .5 = (.3, -.5)
    slopes = target_slopes(
        lambda X: np.zeros((len(X), 2)), Z[:1], np.array([[0.3, 0.5]]), domain
    )
    np.testing.assert_allclose(slopes, [[0.3, -0.5]], atol=1e-9)


@pytest.mark.parametrize("engine", ["batched", "deap"])
def test_the_search_raises_the_mean_error(engine):
    from amlb_ext.hardening.search.deap_engine import genetic_search_deap

    rng = np.random.default_rng(1)
    bad, y = rng.random((4, 3)), rng.random((4, 2))
    config = SearchConfig(
        kappa=1.0,
        operators={"population": 10, "generations": 5, "start": "unique"},
    )
    domain = learn_domain(bad, bad, y, n_classes=0, n_categorical=0)

    def predict(Z):
        return np.column_stack([2 * Z[:, 0], -3 * Z[:, 1]])

    run = genetic_search if engine == "batched" else genetic_search_deap
    best, value = run(predict, bad, y, domain=domain, config=config, seed=7)
    before, after = (((predict(Z) - y) ** 2).mean(axis=1) for Z in (bad, best))
    assert (value >= before - 1e-12).all()
    assert after.mean() > before.mean()


def test_a_row_is_kept_only_if_every_label_passes(prepared):
    models, train = prepared.models, prepared.train
    parents, parent = train.take(np.arange(3)), np.arange(3)
    t = models.predict_oracle(parents.Z)
    far = [10 * target.oracle.rmse_ for target in models.targets]
    y = t + np.array([[0, 0], [far[0], 0], [0, -far[1]]])
    made = judge_made_rows(models, parents, Z=parents.Z, y=y, parent=parent)
    # all labels were plausible where they came from
    well = replace(parents, y=t, support=np.zeros((3, 2)))
    assert label_passes(models, made, well).tolist() == [True, False, False]
    doubted = replace(well, support=np.array([[0, 0], [-99, 0], [-99, 0]]))
    # the second row's first label was as doubtful before; of the third it is the second label
    assert label_passes(models, made, doubted).tolist() == [True, True, False]


# ---------------------------------------------------------------- what is refused, what is said
