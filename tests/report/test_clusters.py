"""Groups of failures and the map: planted groups come back, a single cloud stays one."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.core.task import Column
from amlb_ext.report.clusters import assign_groups, describe_clusters, find_clusters
from amlb_ext.report.feature_space import FeatureSpace, project_rows

SCHEMA = (
    Column("age", "numeric", (), True),
    Column("size", "numeric"),
    Column("job", "categorical", ("blue", "white", "none"), True),
)


def table(n, rng):
    x = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "size": rng.lognormal(0, 2, n),
            "job": pd.Categorical(rng.choice(["blue", "white", "none"], n)),
        }
    )
    x.loc[rng.random(n) < 0.1, "age"] = np.nan
    x.loc[rng.random(n) < 0.1, "job"] = np.nan
    return x


def blobs(sizes, dims, rng):
    centres = 8 * np.eye(len(sizes), dims)
    return np.vstack(
        [c + rng.normal(size=(n, dims)) for c, n in zip(centres, sizes, strict=True)]
    )


def test_space_is_finite_and_orders_nothing_by_scale():
    x = table(300, np.random.default_rng(0))
    z = FeatureSpace().fit(x, SCHEMA).transform(x)
    assert np.isfinite(z).all()
    assert len(z) == 300
    rescaled = x.assign(age=x["age"] * 1e6, size=x["size"] * 1e-6)
    again = FeatureSpace().fit(rescaled, SCHEMA).transform(rescaled)
    np.testing.assert_allclose(np.abs(z), np.abs(again), atol=1e-6)


def test_a_categorical_counts_about_as_much_as_a_number():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {
            "n": rng.normal(size=2000),
            "c": pd.Categorical(rng.choice([f"c{i}" for i in range(12)], 2000)),
        }
    )
    for names in (["n"], ["c"]):
        schema = [Column(n, "numeric" if n == "n" else "categorical") for n in names]
        total = FeatureSpace().fit(x, schema).transform(x).var(axis=0).sum()
        assert total == pytest.approx(1, abs=0.01)


def test_space_takes_unseen_and_missing_values():
    rng = np.random.default_rng(0)
    space = FeatureSpace().fit(table(200, rng), SCHEMA)
    odd = pd.DataFrame(
        {
            "age": [np.nan, 1e300, -1e300],
            "size": [np.nan] * 3,
            "job": pd.Categorical(["never seen", None, "blue"]),
        }
    )
    z = space.transform(odd)
    assert np.isfinite(z).all()
    assert np.abs(z).max() < 20
    assert space.transform(odd[:0]).shape == (0, z.shape[1])


@pytest.mark.parametrize(
    "x",
    [
        pd.DataFrame({"a": [1.0, 2.0]}),
        pd.DataFrame({"a": [1.0]}),
        pd.DataFrame({"a": np.ones(50)}),
        pd.DataFrame({"a": np.full(50, np.nan)}),
        pd.DataFrame(np.random.default_rng(0).normal(size=(5, 40))).rename(columns=str),
        pd.DataFrame({"a": pd.Categorical(["u"] * 9)}),
        pd.DataFrame({"a": pd.Categorical([None] * 9, categories=["u"])}),
        pd.DataFrame({"a": pd.Categorical([f"c{i}" for i in range(300)])}),
    ],
)
def test_degenerate_frames_make_a_space_and_a_map(x):
    numeric = pd.api.types.is_float_dtype(x.dtypes.iloc[0])
    schema = [Column(c, "numeric" if numeric else "categorical") for c in x]
    z = FeatureSpace().fit(x, schema).transform(x)
    assert len(z) == len(x)
    assert np.isfinite(z).all()
    labels = find_clusters(z, 0)
    assert len(labels) == len(x)
    xy, _, method = project_rows(z, np.random.default_rng(0), most=60)
    assert xy.shape == (min(len(x), 60), 2)
    assert np.isfinite(xy).all()
    assert method in ("PCA", "t-SNE")
    assert len(describe_clusters(x, schema, labels, x)) == labels.max() + 1


def test_no_rows_or_columns_are_refused():
    with pytest.raises(DataError):
        FeatureSpace().fit(pd.DataFrame({"a": [1.0]}), [])
    with pytest.raises(DataError):
        FeatureSpace().fit(pd.DataFrame({"a": []}), [Column("a", "numeric")])


def test_planted_groups_come_back_by_size():
    sizes = [20, 60, 35]
    z = blobs(sizes, 5, np.random.default_rng(0))
    labels = find_clusters(z, 0)
    assert np.bincount(labels).tolist() == [60, 35, 20]
    truth = np.repeat([2, 0, 1], sizes)
    assert (labels == truth).all()
    assert (labels == find_clusters(z, 0)).all()


@pytest.mark.parametrize("dims", [1, 2, 8])
def test_one_cloud_is_one_group(dims):
    split = 0
    for seed in range(8):
        z = np.random.default_rng(seed).normal(size=(80, dims))
        split += find_clusters(z, seed).max() > 0
    assert split <= 2


def test_few_or_identical_rows_are_one_group():
    assert find_clusters(np.zeros((0, 3)), 0).shape == (0,)
    assert find_clusters(blobs([9, 9], 2, np.random.default_rng(0)), 0).max() == 0
    assert find_clusters(np.ones((50, 3)), 0).max() == 0


def test_phrases_name_what_was_planted():
    rng = np.random.default_rng(0)
    x = table(600, rng)
    mine = x[:90].copy()
    labels = np.repeat([0, 1], [50, 40])
    mine.loc[mine.index[:50], "age"] = rng.normal(65, 3, 50)
    mine.loc[mine.index[50:], "job"] = "blue"
    mine.loc[mine.index[50:], "age"] = np.nan
    first, second = describe_clusters(mine, SCHEMA, labels, x)
    assert first.startswith("high age (median 6")
    assert "all rows 4" in first or "all rows 39" in first
    assert "age mostly missing (100%, all rows" in second
    assert "job mostly blue (100%, all rows" in second


def test_noise_is_not_described():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(1000, 200))).rename(columns=str)
    schema = [Column(c, "numeric") for c in x]
    (phrase,) = describe_clusters(x[:40], schema, np.zeros(40, int), x)
    assert phrase.startswith("no feature departs clearly from all rows")


def test_text_of_the_user_is_tamed():
    x = pd.DataFrame({"a\nb" * 40: pd.Categorical(["<b>,\n"] * 50 + ["v"] * 150)})
    schema = [Column(x.columns[0], "text")]
    (phrase,) = describe_clusters(x[:50], schema, np.zeros(50, int), x)
    assert "\n" not in phrase
    assert "… mostly “<b>,” (100%, all rows 25%)" in phrase


def test_made_rows_belong_to_the_group_of_their_parent():
    groups = assign_groups(np.array([4, 9, 4, 1]), np.array([9, 4]), np.array([0, 1]))
    assert groups.tolist() == [1, 0, 1, -1]
    assert assign_groups(
        np.zeros(0, int), np.zeros(0, int), np.zeros(0, int)
    ).shape == (0,)


def test_the_map_keeps_failures_and_thins_the_rest_evenly():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1500, 4))
    keep = np.arange(1500) < 100
    group = np.repeat(["good", "good", "ga", "synthetic"], [100, 1000, 50, 350])
    _, chosen, _ = project_rows(z, rng, keep=keep, group=group, method="PCA", most=400)
    assert len(chosen) == 400
    assert keep[chosen].sum() == 100
    # 300 places: ga has 50 rows, the others 125 each
    others = chosen[~keep[chosen]]
    counts = dict(zip(*np.unique(group[others], return_counts=True), strict=True))
    assert counts == {"ga": 50, "good": 125, "synthetic": 125}
    _, chosen, _ = project_rows(
        z, rng, keep=np.arange(1500) < 1400, method="PCA", most=300
    )
    assert len(chosen) == 300
    assert (chosen >= 1400).sum() == 100


def test_the_map_shows_planted_groups_and_repeats_itself():
    z = blobs([60, 60, 60], 6, np.random.default_rng(0))
    xy, chosen, method = project_rows(z, np.random.default_rng(1))
    again, _, _ = project_rows(z, np.random.default_rng(1))
    assert method == "t-SNE"
    assert chosen.tolist() == list(range(180))
    np.testing.assert_array_equal(xy, again)
    centres = xy.reshape(3, 60, 2).mean(axis=1)
    nearest = np.argmin(((xy[:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert (nearest == np.repeat([0, 1, 2], 60)).mean() > 0.98
