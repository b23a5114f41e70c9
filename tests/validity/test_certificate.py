"""Planted cases: a certificate must catch what was done to the rows, and nothing else."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planted_suites import FEW, certify_rows, make_suite, region_table, tampered

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.unit import ROW
from amlb_ext.suite import Rows, SuiteFiles
from amlb_ext.validity import (
    Certificate,
    decide_verdict,
    read_task,
)
from amlb_ext.validity.certificate import FORMAT
from amlb_ext.validity.certify import (
    CertifySettings,
    certify_suite,
    certify_task,
    read_null,
)
from amlb_ext.validity.task_measures import measure_copies

# light trees still see the planted corner that a line does not
pytestmark = pytest.mark.usefixtures("light_models")


def noise_table(n=900):
    """A linear rule and noise alike everywhere: a linear F is the oracle."""
    rng = np.random.default_rng(1)
    X = rng.random((n, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    return frame.assign(y=X @ [3.0, -2.0, 1.0, 0.5] + rng.normal(0, 0.5, n))


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("region")
    settings = {"hardness": {"rule": "wrong"}, "search": {"kappa": 0.02}}
    return make_suite(folder, region_table(), **settings)


@pytest.fixture(scope="module")
def rows(suite):
    return read_task(SuiteFiles.load(suite), "planted")


@pytest.fixture(scope="module")
def certified(rows):
    return certify_task(rows, CertifySettings())


@pytest.fixture(scope="module")
def clean(certified):
    return certified.certificate


@pytest.fixture(scope="module")
def few(rows):
    """A certificate by few candidates."""
    return certify_rows(rows, candidates=FEW)


def test_an_honest_suite_passes_what_it_should(clean):
    for name in (
        "region",
        "solvability",
        "target check",
        "null on region",
        "effective size",
    ):
        assert clean[name].passed, clean[name]
    for name in ("label agreement", "label support", "exact copies", "closest record"):
        assert clean[name].passed, clean[name]
    assert clean["solvability"].value > 0.3  # trees see the corner, the line does not
    assert clean.verdict in ("rank", "describe")
    assert len(clean.candidates) == 12
    assert not clean.dropped


def test_random_labels_are_caught(rows, few):
    rng = np.random.default_rng(2)

    def flip(part):
        codes = rng.integers(0, 2, len(part))
        target = pd.Categorical.from_codes(codes, dtype=part.target.dtype)
        return Rows(
            part.features, pd.Series(target, name=part.target.name), part.provenance
        )

    spoiled = certify_rows(tampered(rows, "synthetic", flip), candidates=FEW)
    assert (
        spoiled["label support"].passed is False
        or spoiled["label agreement"].passed is False
    )
    assert spoiled["synthetic: order"].passed is False
    assert spoiled.verdict != "rank"
    assert spoiled.verdict == "stress-test only"
    # the other rows were left alone
    for measure in ("ga: z2", "ga: order"):
        assert spoiled[measure].value == few[measure].value


def test_copies_are_caught(rows):
    bad = pd.concat(
        [
            parts["bad"].features.assign(
                _y=parts["bad"].target, _p=parts["bad"].provenance.parent_row
            )
            for _, parts in rows.folds.values()
        ]
    )

    def copy(part):
        chosen = bad.set_index("_p").loc[part.provenance["parent_row"]]
        chosen = chosen[~chosen.index.duplicated()].loc[part.provenance["parent_row"]]
        chosen = chosen.reset_index(drop=True)
        target = chosen.pop("_y").rename(part.target.name)
        return Rows(chosen, target, part.provenance)

    spoiled = certify_rows(tampered(rows, "synthetic", copy), candidates=FEW)
    # all made rows are looked at: the synthetic ones are copies, the augmented ones are not
    made = {
        n: sum(len(parts[n]) for _, parts in rows.folds.values())
        for n in ("ga", "synthetic")
    }
    share = made["synthetic"] / (made["ga"] + made["synthetic"])
    assert spoiled["exact copies"].value == pytest.approx(share)
    assert spoiled["exact copies"].passed is False
    assert spoiled["repeated rows"].passed is False
    assert spoiled["contradictions"].value == 0.0
    assert spoiled["closest record"].value == 0.0
    assert (
        spoiled["synthetic: tau"].value > 0.7
    )  # copies rank well: that is why they must be caught
    assert (spoiled.verdict, "exact copies" in spoiled.reason) == (
        "stress-test only",
        True,
    )


def test_copies_of_features_with_another_label_are_contradictions(rows):
    """The other rows of the fold are looked at too, on both sides."""

    def contradict(part):
        flipped = part.target.cat.rename_categories({"yes": "no", "no": "yes"})
        target = flipped.cat.reorder_categories(part.target.cat.categories)
        return Rows(part.features, target, part.provenance)

    (train, parts) = rows.folds[0]
    few = train.take(np.arange(len(train)) < 20)
    about = pd.DataFrame({"source_row": np.full(20, -1)})
    planted = contradict(Rows(few.features, few.target, about))
    one = replace(
        rows, folds={0: (train, {"full": parts["full"], "synthetic": planted})}
    )
    found = {m.name: m for m in measure_copies(one)}
    assert found["exact copies"].value == found["contradictions"].value == 1.0
    assert found["repeated rows"].value == 0.0
    assert decide_verdict([found["contradictions"]], ROW)[0] == "stress-test only"


def test_no_region_where_f_is_the_oracle(tmp_path):
    out = make_suite(tmp_path, noise_table(), search={"kappa": 0.02})
    (found,) = certify_suite(out, 1)
    # F is the best: either that is shown, or nothing is; never that a candidate mends something
    assert found["solvability"].finding in ("nothing to mend", "not shown")
    assert found["solvability"].value < 0.05
    assert found["solvability"].high < 0.2
    assert found.verdict != "rank"
    assert "region of failure" in found.reason
    assert found["region"].value < 0.65
    # measures are of capped errors, what is stored is not
    (capping,) = [note for note in found.notes if "in the measures errors" in note]
    assert "(F errs by as much on 13 of 360 rows)" in capping
    stored = read_null(SuiteFiles.load(out), "planted")["loss"]
    assert stored.nlargest(13).nunique() == 13


def test_a_certificate_that_was_written_does_not_contradict_itself(clean, few):
    for certificate in (clean, few):
        assert certificate.contradiction() == ""


def change_measure(name, **values):
    def change(entry):
        (found,) = [each for each in entry["measures"] if each["name"] == name]
        found.update(values)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda entry: entry.update(verdict="rank"), "its verdict and reason"),
        (lambda entry: entry.update(reason="All well."), "its verdict and reason"),
        (
            change_measure("effective size", passed=False),
            "'effective size', whether it",
        ),
        (change_measure("target check", passed=None), "'target check', whether it"),
        (change_measure("region", value=0.999), "'region', its value lies outside"),
        (change_measure("solvability", finding="nothing to mend"), "'solvability', wh"),
        (
            change_measure("ga: order", value=0.9, passed=True),
            "'ga: order', whether it",
        ),
    ],
)
def test_a_certificate_that_contradicts_itself_is_found(clean, change, said):
    entry = json.loads(clean.json())
    change(entry)
    assert said in Certificate.from_json(entry).contradiction()


def test_json_comes_back(clean):
    assert "NaN" not in clean.json()
    back = Certificate.from_json(json.loads(clean.json()))
    assert back == clean
    assert back.text() == clean.text()


def test_predictions_as_f_have_no_null(rows):
    settings = {**rows.settings, "baseline": {"model": "f.csv", "sha256": "0"}}
    # rows that somebody altered lose the losses of the re-fits, as those of predictions lack them
    without_refits = tampered(rows, "full", lambda part: part)
    found = certify_rows(replace(without_refits, settings=settings), candidates=FEW)
    assert "null on region" not in {m.name for m in found.measures}
    assert any("file" in note for note in found.notes)
    assert found.verdict != "rank"
    assert found["solvability"].value > 0.3  # F's losses come from the provenance


def test_few_bad_rows_pass_nothing(rows):
    def take_three(part):
        return part.take(np.arange(len(part)) < 3)

    found = certify_rows(tampered(rows, "bad", take_three), candidates=FEW)
    assert found["synthetic: z2"].value is None
    for name in ("target check", "label support"):
        assert found[name].value is None
        assert found[name].passed is False
        assert "not enough rows" in found[name].text
    assert found["exact copies"].passed  # they are counted, which needs no bad rows
    assert found.verdict == "describe"
    # the order is held to all rows, few failures or many, and fails first
    assert "not shown to order models as well" in found.reason


def test_no_synthetic_rows(rows):
    folds = {
        k: (train, {n: p for n, p in parts.items() if n not in ("synthetic", "ga")})
        for k, (train, parts) in rows.folds.items()
    }
    none = certify_rows(replace(rows, folds=folds), candidates=FEW)
    assert none["region"].passed
    assert none.verdict == "describe"
    assert not [name for name in none.failed if name.endswith("order")]
    assert "There are no made rows" in none.reason


def test_a_damaged_certificate_says_what_to_do(clean):
    with pytest.raises(SuiteError, match="hardsynth certify"):
        Certificate.from_json({"format": FORMAT, "measures": []})
    for other in (FORMAT - 1, 99):
        with pytest.raises(SuiteError, match=f"format {other}"):
            Certificate.from_json({**clean.to_json(), "format": other})


def test_twins_of_f_win_on_bad_rows_but_not_on_the_region(clean):
    assert clean["null on region"].passed
    assert clean["null on bad rows"].value < clean["null on region"].value
