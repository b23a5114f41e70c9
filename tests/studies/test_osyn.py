"""The seed paper's tables: transcription, cases, estimates."""

import numpy as np
import pytest

from amlb_ext.estimate.osyn.bound import OsynSettings, osyn_closed
from amlb_ext.estimate.osyn.regions import RegionTally
from benchmarks.studies.files import load_uci, write_stand_ins
from benchmarks.studies.osyn import repeat
from benchmarks.studies.osyn.arms import Evidence, algorithm_1, evaluate_model
from benchmarks.studies.osyn.case import (
    Case,
    Choice,
)
from benchmarks.studies.osyn.tables import SMALL as TINY
from benchmarks.studies.page import read_printed


def stand_ins(folder):
    write_stand_ins(folder)
    return folder


def even(K: int, each: int = 50) -> RegionTally:
    return RegionTally(np.full(K, each), None, 0, False)


class TestPrinted:
    @pytest.mark.parametrize("name", ["osyn-table-2", "osyn-table-3", "osyn-table-7"])
    def test_gap_is_oracle_minus_estimate_within_rounding(self, name):
        told, odd = dict(read_printed("osyn")[name]), []
        slips = told.pop("slips")
        for data, rows in told.items():
            for model, row in rows.items():
                for arm in ("osyn", "bootstrap", "synthetic"):
                    # three numbers rounded to .001: the identity may miss by .0015
                    if (
                        abs(row["oracle"][0] - row[arm][0] - row[arm][-1])
                        > 0.0015 + 1e-9
                    ):
                        odd.append(f"{data} {model} {arm}")
        assert odd == slips

    def test_the_divergence_of_the_inputs_is_the_printed_one(self):
        for shift, row in read_printed("osyn")["osyn-table-1"]["rows"].items():
            assert repeat.kl_divergence(float(shift)) == pytest.approx(
                row["kl"][0], abs=0.0006
            )


class TestCase:
    def test_rows_of_large_loss_are_labelled_more_often(self, tmp_path):
        task = load_uci("bike", stand_ins(tmp_path))
        case = Case(task, Choice(**{**TINY, "bias": 8.0}), 0, True)
        loss = np.linspace(0, 1, len(case.oracle))
        rows = np.searchsorted(case.oracle, case.draw_labelled(loss))
        assert loss[rows].mean() > loss.mean() + 0.08
        assert case.class_shares is None
        assert case.y.min() == 0
        assert case.y.max() == 1


class TestArms:
    def found(self, zero_one=True, K=40):
        rng = np.random.default_rng(0)
        loss_s = (rng.random(K) < 0.3).astype(float) if zero_one else rng.random(K)
        region = rng.integers(-1, K, 20_000)
        loss_u = rng.random(20_000)
        loss_u = (loss_u < 0.5).astype(float) if zero_one else loss_u.astype(np.float32)
        return Evidence(
            loss_s=loss_s,
            masses=even(K),
            region=region,
            loss_u=loss_u,
            oracle=0.25,
            zero_one=zero_one,
        )

    @pytest.mark.parametrize("zero_one", [True, False])
    def test_algorithm_1_on_rows_at_hand_comes_to_the_closed_form(self, zero_one):
        found, of = self.found(zero_one), OsynSettings(g=400, b=0, a_hat=1.0)
        got = algorithm_1(found, of, np.random.default_rng(1))
        closed = osyn_closed(found.loss_s, found.masses, of, np.random.default_rng(1))
        # 500 rows a region, 10 wanted: enough of large loss, but for l(s) near 1
        assert got.F_minus_eps == pytest.approx(
            closed.F_minus_eps, abs=1e-12 if zero_one else 0.01
        )
        assert got.F_minus_eps <= closed.F_minus_eps + 1e-12

    def test_the_tuned_bound_is_nearest_from_below(self):
        row, sweep = evaluate_model(self.found(), Choice(**TINY), 0)
        assert (
            len(sweep) == 71 * 199 - 199
        )  # b = 0 has no whole count: 400 rows in 40 regions
        assert row["a_priori"] <= row["closed"]
        assert row["a_priori"] <= row["tuned"] <= 0.25
