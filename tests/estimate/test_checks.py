import numpy as np

from amlb_ext.estimate import drawing as checks
from amlb_ext.estimate.drawing import compare_predictions


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


def test_predictions_of_one_population_agree_and_of_two_do_not():
    rng = np.random.default_rng(0)

    def probabilities(n, share):
        one = (rng.random(n) < share).astype(float)
        return np.column_stack([1 - one, one])

    far = probabilities(5000, 0.3)
    # class labels alone come as 0 and 1, and say nothing of confidence
    (same,) = compare_predictions(probabilities(300, 0.3), far)
    (other,) = compare_predictions(probabilities(300, 0.5), far)
    assert not same.finding(checks.REFUTED).refuted
    assert other.finding(checks.REFUTED).refuted
    one = np.tile([1.0, 0.0], (9, 1))
    assert compare_predictions(one, one)[0].p == 1


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


def test_findings_together_tell_only_what_refutes():
    a, b = checks.Finding(False, "fine"), checks.Finding(True, "not fine")
    assert checks.join_findings([]) is None
    assert checks.join_findings([a, b]) == checks.Finding(True, "not fine")
    assert checks.join_findings([a, a]) == checks.Finding(False, "fine; fine")
