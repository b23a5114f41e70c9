"""Every study's small case by its command: its page, tables and pictures, and nothing twice."""

import re
from functools import cache

import pytest
from small_models import shrink

from amlb_ext.validity import candidates
from amlb_ext.validity.candidates import JUDGES
from benchmarks.studies import engine
from benchmarks.studies.__main__ import STUDIES, main
from benchmarks.studies.fidelity import proposals
from benchmarks.studies.swap import study as swap_study
from benchmarks.studies.swarms.choices import SEEN

#: What a study writes beside its page.
WRITTEN = {
    "figure-5": {"housing.svg", "simulated.svg"},
    "figure-8": {"housing.svg", "diabetes.svg"},
    "osyn-table-3": {"agreement.csv"},
    "swarm-table-2": {"claims.csv", "figures.csv", "worth.svg"},
    "swarm-hull": {"hull.csv", "hull.svg"},
    "fidelity": {"contrasts.csv", "levels.csv", "contrasts.svg", "tau_realised.svg"},
    "coverage": {"coverage.csv"},
    "gate-margin": {"means.csv"},
}


#: Studies whose command is given twice: one with pictures, one of the general engine.
GIVEN_TWICE = {"osyn-table-2", "swarm-hull", "coverage"}


#: The takers that a swarm sees, and the judges of a certificate, which no one of them sees.
CANDIDATES = (*SEEN, *JUDGES)


@pytest.fixture(scope="module", autouse=True)
def _light():
    """Few trees, and few rows where their number is no setting."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        every = candidates._all_candidates
        patch.setattr(
            candidates,
            "_all_candidates",
            lambda *asked: {name: every(*asked)[name] for name in CANDIDATES},
        )
        swarms = "benchmarks.studies.swarms"
        for name, value in {
            f"{swarms}.methods.ROUNDS": 1,
            f"{swarms}.methods.POOL": 2,
            f"{swarms}.draw.REGRET_POOL": 1,
            f"{swarms}.hull.POINTS": 3,
            f"{swarms}.hull.POINT_ROWS": 50,
            f"{swarms}.adversarial.BASE_ROUNDS": 5,
            "amlb_ext.synthesizers.swarm.arena.FINAL_ROWS": 50,
            "amlb_ext.validity.calibration.LADDER": (0.5, 0.0),
            "benchmarks.claims.solvability.FRESH_OF_CAPPED": 5000,
            "benchmarks.studies.paper.figures.MOST_MAPPED": 100,
            "benchmarks.studies.paper.figures.MOST": 200,
            "benchmarks.studies.swap.study.FITTED": 500,
            "benchmarks.studies.swap.study.POOL": 1000,
            "benchmarks.studies.swap.study.REFITS": 2,
            "benchmarks.studies.swap.folds.REFITS": 2,
            "benchmarks.studies.truth.FITTED": 500,
            "benchmarks.studies.truth.POOL": 1000,
            "benchmarks.studies.coverage.sampling.TRUTH": 2000,
            "benchmarks.studies.coverage.populations.SURROGATE_TRAIN": 1000,
            "benchmarks.claims.window_coverage.TRUTH_SEEDS": (0,),
            "benchmarks.claims.window_coverage.TWINS": 2,
        }.items():
            patch.setattr(name, value)
        patch.setitem(proposals.BASE, "max_steps", 20)
        for name, value in {
            "GENERATORS": 3,
            "STEPS": 3,
            "ITERATIONS": 1,
            "EVALUATION_ROWS": 60,
            "FINAL_ROWS": 60,
            "PROPOSED": 300,
        }.items():
            patch.setattr(proposals, name, value)
        for forest in swap_study.MODELS["forest"]:
            patch.setattr(forest, "n_estimators", 8)
        for boosting in swap_study.MODELS["boosting"]:
            patch.setattr(boosting, "max_iter", 10)
        yield


@pytest.fixture(scope="module")
def small_case(tmp_path_factory):
    """Return a function that runs a study's small case once: its words, and the page's folder."""

    @cache
    def run(name):
        out = tmp_path_factory.mktemp(name)
        words = [name, "--small", "-o", str(out), "-j", "1", "-q", "--draws", "1"]
        # CREDIT is not among the data at hand
        assert main(words) == (1 if name == "osyn-table-3" else 0)
        [page] = out.rglob("index.md")
        return words, page.parent

    return run


@pytest.mark.parametrize("name", STUDIES)
def test_the_small_case(name, small_case):
    _, folder = small_case(name)
    text = (folder / "index.md").read_text(encoding="utf-8")
    assert f"python -m benchmarks.studies {name} --small" in text
    assert {path.name for path in folder.iterdir()} >= WRITTEN.get(name, set())
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (folder / link).stat().st_size > 0


@pytest.mark.parametrize("name", sorted(GIVEN_TWICE))
def test_the_same_command_computes_nothing_and_writes_the_same_bytes(
    name, small_case, monkeypatch
):
    words, folder = small_case(name)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(engine, "_compute", None)
    assert main(words) == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tabel-a1"], "did you mean 'table-a1'"),
        (["table-a1", "--set", "pol=bad"], "did you mean 'pool'"),
        (["table-a1", "--set", "pool=all"], "pool: input should be 'bad' or 'test'"),
        (["table-a1", "--set", "search.kapa=1"], "did you mean 'kappa'"),
        (["table-a1", "--set", "kappa"], "KEY=VALUE"),
        (["table-a1", "--draws", "0"], "give 1 or more"),
        (["table-a3"], "give its folder as --data"),
        (["osyn-table-1", "--set", "generater=vae"], "did you mean 'generator'"),
        (["osyn-table-1", "--set", "generator=copola"], "did you mean 'copula'"),
        (["osyn-table-1", "--set", "delta2=.6"], "must be below .5"),
        (["osyn-table-1", "--set", "models=SVMM"], "did you mean 'SVM'"),
        (["osyn-table-1", "--set", "models=SVR"], "no cell is asked for"),
        (["swarm-table-1", "--set", "iterations=1.5"], "valid integer"),
        (["swarm-table-1", "--set", "generators=2"], "needs 3 or more"),
        (["swarm-table-1", "--set", "objectives=hard"], "no objective 'hard'"),
        (["swarm-table-1", "--set", "tables=digit"], "digits"),
        (["coverage", "--set", "populations=[logistics]"], "'logistic'"),
        (["fidelity", "--set", "methods=[few_bat]"], "did you mean 'few_bad'"),
        (["fidelity", "--phase", "confirmatory", "--draws", "21"], "declares 20"),
        (["fidelity", "--draws", "1001"], "seeds of the confirmatory phase"),
        (["fidelity", "--set", "phases={nowhere: exploratory}"], "which is no table"),
        (["fidelity"], "name the folder of the tables with --data"),
        (["fidelity", "--protocol", "none.yaml"], "none.yaml"),
    ],
)
def test_what_is_wrong_is_one_line(words, message, tmp_path, capsys):
    assert main([*words, "-o", str(tmp_path), "-q"]) == 2
    said = capsys.readouterr().err
    assert message in said.replace("\n", " ")
    assert said.count("\n") == 1
