"""Tables whose made rows could only too easily repeat real ones, and the files read as text."""

import numpy as np
import pandas as pd
import pytest
from small_models import lighten
from written_suites import put_fold

from amlb_ext.core.config import build_config
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.split import split_task
from amlb_ext.suite import Layout, amlb_name


def balance(rows=625):
    """The label says which side of the scale is heavier: a function of four categories."""
    sides = np.array(np.meshgrid(*[np.arange(1, 6)] * 4)).reshape(4, -1).T
    sides = np.random.default_rng(7).permutation(sides)[:rows]
    table = pd.DataFrame(
        np.char.add("s", sides.astype(str)), columns=["lw", "ld", "rw", "rd"]
    )
    return make_task(table.assign(y=balance_label(table)), "y", name="balance")


def balance_label(features):
    lw, ld, rw, rd = (
        features[c].astype(str).str[1:].astype(int) for c in ("lw", "ld", "rw", "rd")
    )
    gap = (lw * ld - rw * rd).to_numpy()
    return np.select([gap > 0, gap < 0], ["L", "R"], "B")


def chess(rows=700, columns=9):
    """Positions on a board: categories alone, and a label that a few of them decide together."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (rows, columns))
    codes[:, 0] = rng.integers(0, 3, rows)
    table = pd.DataFrame(
        np.array(["f", "t", "n"])[codes], columns=[f"c{j}" for j in range(columns)]
    )
    return make_task(table.assign(y=chess_label(table)), "y", name="chess")


def chess_label(features):
    code = {c: (features[c].astype(str) == "t").to_numpy() for c in features.columns}
    won = (code["c1"] ^ code["c2"] ^ code["c3"]) & (code["c4"] | code["c5"])
    won |= (features["c0"].astype(str) == "n").to_numpy() & code["c6"]
    return np.where(won, "won", "nowin")


def nominal_target(rows=400):
    """Four nominal columns and a number that they only partly explain."""
    rng = np.random.default_rng(5)
    levels = (4, 3, 6, 3)
    codes = np.column_stack([rng.integers(0, k, rows) for k in levels])
    table = pd.DataFrame(np.char.add("v", codes.astype(str)), columns=list("abcd"))
    y = (
        codes @ [1.0, 0.5, 0.3, 2.0]
        + 3.0 * (codes[:, 0] == codes[:, 1])
        + rng.normal(0, 1.0, rows)
    )
    return make_task(table.assign(y=y.round(3)), "y", name="nominal")


def numeric(rows=500):
    """Two linear pieces in three numbers."""
    rng = np.random.default_rng(2)
    x = rng.random((rows, 3))
    table = pd.DataFrame(x, columns=list("abc"))
    y = (
        x[:, 0]
        + np.where(x[:, 1] > 0.7, -1.0, 1.0) * x[:, 2]
        + rng.normal(0, 0.02, rows)
    )
    return make_task(table.assign(y=y), "y", name="numeric")


QUICK = {
    "split": {"folds": 1, "test_size": 0.3},
    "synthesizer": {"name": "local", "epochs": 20},
    "search": {"kappa": 0.0},
    "baseline": {"params": {"n_estimators": 30}},
}


def harden(task, *, light=True, **layers):
    config = build_config(QUICK, layers)
    with pytest.MonkeyPatch.context() as patch:
        if light:
            lighten(patch)
        return harden_fold(split_task(task, config.split, config.seed), 0, config)


def written(task, hard, folder):
    """Write a fold and return its files as text, ``part, side -> frame``, made rows marked."""
    layout = Layout(folder)
    about = {"name": task.name, "key": "key", "summary": hard.summary}
    record = put_fold(layout, task, hard.train, hard.parts, **about)
    out = {}
    for part, entry in record.parts.items():
        name = amlb_name(task.name, part)
        about = pd.read_parquet(layout.provenance(name, 0))
        out[part, "test"] = text(layout.at(entry.test), about)
        if part in ("full", "hard"):
            own = amlb_name(task.name, "hard") if part == "hard" else task.name
            about = pd.read_parquet(layout.train_provenance(own, 0))
            out[part, "train"] = text(layout.at(entry.train), about)
    return out


def text(path, about):
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    columns = list(frame.columns[:-1])
    rows = pd.DataFrame(
        {"x": list(map(tuple, frame[columns].to_numpy())), "y": frame.iloc[:, -1]}
    )
    return rows.assign(made=(about["source_row"] == -1).to_numpy())


def audit(files):
    """Count, by the texts in the files alone, what no suite may hold."""
    real = pd.concat([rows[~rows["made"]] for rows in files.values()])
    labels = real.groupby("x")["y"].agg(set).to_dict()
    every_made = pd.concat([rows[rows["made"]] for rows in files.values()])
    homes = [("ga", "test"), ("synthetic", "test"), ("hard", "train")]
    made = pd.concat(
        [files[home][files[home]["made"]] for home in homes if home in files]
    )
    tests = {
        x for (_, side), rows in files.items() if side == "test" for x in rows["x"]
    }
    nothing = made[:0]
    hard, again = (files.get(("hard", side), nothing) for side in ("train", "test"))
    pairs = zip(made["x"], made["y"], strict=True)
    return {
        "made": len(made),
        "copies": int(every_made["x"].isin(labels.keys()).sum()),
        "contradictions": sum(bool(labels.get(x, {y}) - {y}) for x, y in pairs),
        "repeated": int(made["x"].duplicated().sum()),
        "repeated_hard": int(again.loc[again["made"], "x"].duplicated().sum()),
        "hard": len(hard),
        "hard_is_test": int(hard["x"].isin(tests).sum()),
    }
