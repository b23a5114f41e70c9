import numpy as np
import pytest

from amlb_ext.synthesizers.prep import NormalScores, TablePrep


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 3, 11, 500])
def test_scores_there_and_back(n):
    for values in (
        rng().random(n),
        rng().integers(0, 3, n) / 2,
        rng().random(n).round(1),
    ):
        scores = NormalScores(values)
        np.testing.assert_allclose(
            scores.inverse(scores.transform(values)), values, atol=1e-12
        )


def test_scores_are_monotone_and_normal():
    values = rng().random(1000) ** 4
    scores = NormalScores(values)
    z = scores.transform(np.sort(values))
    assert (np.diff(z) > 0).all()
    assert abs(z.mean()) < 1e-6
    assert z.std() == pytest.approx(1, abs=0.01)
    back = scores.inverse(np.linspace(-6, 6, 999))
    assert (np.diff(back) >= 0).all()
    assert (back[0], back[-1]) == (values.min(), values.max())


def test_atoms_come_back_as_often_as_they_were_seen():
    # 600 zeros, 100 ones (atoms), 300 values in (2, 3) seen once each
    values = np.r_[np.zeros(600), np.ones(100), 2 + np.sort(rng().random(300))]
    back = NormalScores(values).inverse(rng().standard_normal(20_000))
    assert np.mean(back == 0) == pytest.approx(0.6, abs=0.02)
    assert np.mean(back == 1) == pytest.approx(0.1, abs=0.01)
    assert set(back[back < 2]) == {0.0, 1.0}
    # nothing between the atom at 1 and the least of the others
    assert back[back > 1].min() == values[700]
    # the continuous part is not limited to fitted values
    assert np.isin(back[back > 2], values).mean() < 0.1


def test_round_trip_with_holes_constants_and_empty_columns():
    X = np.column_stack(
        [
            rng().integers(0, 4, 30),
            np.where(np.arange(30) % 3 == 0, np.nan, rng().random(30)),
            np.where(np.arange(30) % 2 == 0, np.nan, 0.25),
            np.full(30, 0.5),
            np.full(30, np.nan),
        ]
    )
    for normalise in (True, False):
        prep = TablePrep(normalise=normalise).fit(X, 1, rng())
        codes, numbers, seen = prep.transform(X)
        assert prep.cards_ == (
            4,
            2,
            2,
        )  # the category, then "is missing" of two columns
        assert prep.n_numbers_ == 1
        assert np.isfinite(numbers).all()
        assert seen[:, 0].tolist() == (~np.isnan(X[:, 1])).tolist()
        np.testing.assert_allclose(prep.inverse(codes, numbers, rng()), X, atol=1e-12)


def test_a_column_of_too_many_codes_is_copied_from_near_rows():
    # the text is a function of x: neighbours in x have neighbouring codes
    x = np.linspace(0, 1, 200)
    X = np.column_stack([np.arange(200), x])
    prep = TablePrep(max_categories=100).fit(X, 1, rng())
    assert prep.cards_ == ()
    codes, numbers, _ = prep.transform(X)
    back = prep.inverse(codes, numbers, rng())
    assert np.abs(back[:, 0] - X[:, 0]).max() <= 2  # one of the three nearest
    assert prep.transform(X[:0]).numbers.shape == (0, 1)
    narrow = TablePrep(max_categories=200).fit(X, 1, rng())
    assert narrow.cards_ == (200,)
