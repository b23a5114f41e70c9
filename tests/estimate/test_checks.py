import numpy as np

from amlb_ext.estimate import drawing as checks


def test_shares_that_agree_pass_and_others_do_not():
    codes = np.repeat([0, 1], [76, 24])
    assert not checks.class_shares(codes, np.array([0.75, 0.25])).refuted
    assert checks.class_shares(codes, np.array([0.5, 0.5])).refuted
    # a class without share in the population cannot have rows
    assert checks.class_shares(codes, np.array([1.0, 0.0])).refuted


def test_a_class_is_missed_only_where_chance_would_not_miss_it():
    train = np.repeat([0, 1], [95, 5])
    # .95^20 = .36, .95^200 = 3e-5
    assert not checks.absent_classes(np.zeros(20), train, ["no", "yes"]).refuted
    found = checks.absent_classes(np.zeros(200), train, ["no", "yes"])
    assert found.refuted
    assert "yes (5.0% of the training rows)" in found.text


def test_how_often_sound_rows_are_refuted():
    # 400 draws of sound rows: the check may say no in about 1 of 100, 4 sd above is 12
    rng = np.random.default_rng(1)
    priors = np.array([0.7, 0.2, 0.1])
    # 20 rows: two are expected of the last class, too few for the chi-square distribution
    few = sum(
        checks.class_shares(rng.choice(3, 20, p=priors), priors).refuted
        for _ in range(100)
    )
    assert few <= 5
    refuted = sum(
        checks.class_shares(rng.choice(3, 200, p=priors), priors).refuted
        for _ in range(400)
    )
    assert refuted <= 12
