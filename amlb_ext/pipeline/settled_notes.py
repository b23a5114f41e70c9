"""What was settled on the training rows of a task's folds, in one sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: A fold's record, as the manifest keeps it.
Summary = Mapping[str, Any]


def settled_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return the sentences on composition and kappa; none where the user named both."""
    notes = [composition_note(summaries), kappa_note(summaries)]
    return [note for note in notes if note]


def composition_note(summaries: Sequence[Summary]) -> str:
    """Return what the main test files hold and how well that orders models.

    Empty where the user named the parts.

    Examples
    --------
    >>> tau = {"chosen": 0.75, "whole": 0.7, "bad": 0.4}
    >>> chosen = {"parts": ["weighted"], "region_share": 0.5, "tau": tau}
    >>> composition_note([{"composition": chosen}])
    "main task: real rows repeated by region weight; on the training rows its order of \
candidates agrees with the region's at tau 0.75 (whole fold 0.70, bad rows 0.40)"
    """
    compositions = [summary.get("composition", {}) for summary in summaries]
    chosen = [entry for entry in compositions if "tau" in entry]
    if not chosen:
        return ""
    counts: dict[str, int] = {}
    for entry in chosen:
        for text in _contents(entry):
            counts[text] = counts.get(text, 0) + 1
    held = []
    for text, n in counts.items():
        where = "" if n == len(chosen) else f" in {n} of {len(chosen)} folds"
        held.append(text + where)
    tau = {}
    for name in ("chosen", "whole", "bad"):
        tau[name] = sum(entry["tau"][name] for entry in chosen) / len(chosen)
    return (
        f"main task: {' and '.join(held)}; on the training rows its order of candidates agrees "
        f"with the region's at tau {tau['chosen']:.2f} (whole fold {tau['whole']:.2f}, bad rows "
        f"{tau['bad']:.2f})"
    )


def _contents(entry: Mapping[str, Any]) -> list[str]:
    """Return what one main test file holds, in words."""
    texts = []
    if "weighted" not in entry["parts"]:
        texts.append("bad rows alone")
    elif entry["region_share"]:
        texts.append("real rows repeated by region weight")
    else:
        texts.append("every real row")
    if "population" in entry["parts"]:
        texts.append("made rows of the population")
    return texts


def kappa_note(summaries: Sequence[Summary]) -> str:
    """Return the sentence that names each fold's calibrated kappa; empty where none was.

    Examples
    --------
    >>> kappa_note([{"calibration": {"kappa": 0.02, "passed": True}}])
    'kappa 0.02, calibrated on the training rows'
    >>> nothing = {"calibration": {"kappa": 0, "passed": False}, "jittered": False}
    >>> kappa_note([nothing])
    'kappa 0, calibrated on the training rows; no kappa passed in 1 fold'
    """
    calibrated = [summary for summary in summaries if "calibration" in summary]
    if not calibrated:
        return ""
    kappas = []
    failed = 0  # folds in which no kappa passed, so that kappa is 0
    jittered = 0
    for summary in calibrated:
        calibration = summary["calibration"]
        kappas.append(f"{calibration['kappa']:g}")
        if not calibration["passed"]:
            failed += 1
            jittered += bool(summary.get("jittered"))
    note = f"kappa {', '.join(dict.fromkeys(kappas))}, calibrated on the training rows"
    if len(set(kappas)) > 1:
        note = (
            f"kappa {', '.join(kappas)} (fold by fold), calibrated on the training rows"
        )
    if failed:
        plural = "" if failed == 1 else "s"
        note += f"; no kappa passed in {failed} fold{plural}"
    if jittered and jittered == failed:
        note += ", so rows there are only jittered"
    elif jittered:
        note += f", so rows of {jittered} are only jittered"
    return note
