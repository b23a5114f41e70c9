"""A certificate is the same whatever the number of processes its folds are shared out to."""

from planted_suites import make_suite, region_table

from amlb_ext.validity.certify import CertifySettings, certify_jobs

FEW = ("ridge", "knn", "sklearn.naive_bayes.GaussianNB")


def test_the_same_again_and_folds_on_two_processes(tmp_path):
    settings = {"hardness": {"rule": "wrong"}, "search": {"kappa": 0.0, "copies": 1}}
    suite = make_suite(tmp_path, region_table(400), **settings)
    job = (str(suite), "planted", CertifySettings(candidates=FEW), None)
    [(_, alone)] = certify_jobs([job], workers=1)
    [(_, shared)] = certify_jobs([job], workers=2)
    assert alone.certificate.json() == shared.certificate.json()
    assert alone.null.equals(shared.null)
