"""Relations that the made rows of a fold keep: settled on its training rows, put to every made row.

Rows are held against relations with their targets, as they will be written: decoded, and with the
targets as columns beside the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import RelationsConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.frames import with_columns
from amlb_ext.core.notes import Note
from amlb_ext.core.task import Task
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.split import group_tasks
from amlb_ext.relations.declared import declared_relations, settle_relations
from amlb_ext.relations.equations import Equation
from amlb_ext.relations.feasible import Relations
from amlb_ext.relations.kinds import Dependency
from amlb_ext.relations.mining import MinedRelations

#: Relations that the manifest lists, those with the most evidence first.
MOST_LISTED = 100


@dataclass(frozen=True, kw_only=True)
class CorrectedRows:
    """Made rows after the relations have been put to them.

    Attributes
    ----------
    features : DataFrame of shape (n, d)
        As they will be written.
    y : ndarray of shape (n, k)
    is_broken : ndarray of shape (n,), bool
        Rows that break a relation; they must not be kept.
    put_back : ndarray of shape (n,), str
        Names of the columns that were given back the parent's value, with commas between.
    """

    features: pd.DataFrame
    y: np.ndarray
    is_broken: np.ndarray
    put_back: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FoldRelations:
    """What made rows of a fold must satisfy.

    Attributes
    ----------
    relations : Relations
    mined : MinedRelations
    n_rows : int
        Training rows on which relations were mined.
    scales : tuple of TargetEncoder
        Per target.
    target_names : tuple of str
    """

    relations: Relations
    mined: MinedRelations
    n_rows: int
    scales: tuple[TargetEncoder, ...]
    target_names: tuple[str, ...]

    @classmethod
    def settle(
        cls,
        tasks: Sequence[Task],
        rows: np.ndarray,
        scales: Sequence[TargetEncoder],
        config: RelationsConfig,
        seed: int,
    ) -> FoldRelations:
        """Mine relations on the training rows, and put them beside those that are declared.

        Parameters
        ----------
        tasks : sequence of Task
            One, or all of a group.
        rows : ndarray of int
            Positions of the training rows in the table.
        scales : sequence of TargetEncoder
        config : RelationsConfig
        seed : int

        Raises
        ------
        ConfigError
            A declared relation that does not fit the table.
        """
        names = tuple(task.target_name for task in tasks)
        columns = {task.target_name: task.target for task in tasks}
        table = with_columns(tasks[0].features, columns)
        relations, mined = settle_relations(config, table.iloc[rows], names, seed)
        return cls(
            relations=relations,
            mined=mined,
            n_rows=len(rows),
            scales=tuple(scales),
            target_names=names,
        )

    def __bool__(self) -> bool:
        return bool(self.relations)

    def breaks(self, features: pd.DataFrame, y: np.ndarray) -> np.ndarray:
        """Return which rows break a relation, ``(n,)`` bool."""
        broken = self.relations.broken(self._with_targets(features, y))
        return np.asarray(broken.any(axis=1))

    def correct(
        self,
        features: pd.DataFrame,
        y: np.ndarray,
        *,
        parent_features: pd.DataFrame,
        parent_y: np.ndarray,
        repairs: bool,
    ) -> CorrectedRows:
        """Put the relations to made rows.

        Parameters
        ----------
        features : DataFrame of shape (n, d)
            Of made rows, decoded.
        y : ndarray of shape (n, k)
        parent_features, parent_y : DataFrame of shape (n, d), ndarray of shape (n, k)
            Of the real rows they came from, which break no relation.
        repairs : bool
            Put the parent's values back where a relation is broken; otherwise the row is marked.
        """
        # numeric targets are written as real ones are, like every other number
        y = np.stack(
            [scale.round_decimals(y[:, j]) for j, scale in enumerate(self.scales)],
            axis=1,
        )
        parents = self._with_targets(parent_features, parent_y)
        made = self.relations.correct(self._with_targets(features, y), parents)
        put_back = np.zeros(made.shape, dtype=bool)
        if repairs:
            made, put_back, is_broken = self.relations.put_back(made, parents)
        else:
            is_broken = np.asarray(self.relations.broken(made, parents).any(axis=1))
        # the parent's own number, not one that was decoded and encoded again
        is_parents = put_back[:, made.columns.get_indexer(self.target_names)]
        return CorrectedRows(
            features=made[list(features.columns)],
            y=np.where(is_parents, parent_y, y),
            is_broken=is_broken,
            put_back=_joined_names(put_back, list(made.columns)),
        )

    def keeps_parent_value(self, encoder: Encoder) -> np.ndarray:
        """Return which encoded columns keep the parent's value, ``(d,)`` bool."""
        return np.isin(encoder.names_, self.relations.frozen)

    def is_computed(self, encoder: Encoder) -> np.ndarray:
        """Return which encoded columns are computed from others, ``(d,)`` bool."""
        return np.isin(encoder.names_, self.relations.derived)

    def derive_encoded(self, encoder: Encoder) -> Callable[[np.ndarray], None] | None:
        """Return what computes the determined columns of encoded rows, in place.

        None where no feature is determined by others.
        """
        if not self.relations.derivations:
            return None

        def derive(Z: np.ndarray) -> None:
            for name, relation in self.relations.derivations:
                features = {}
                for column in relation.columns:
                    if column in self.target_names:
                        break  # the search does not change targets, and has none at hand
                    values = encoder.decode_column(
                        column, Z[:, encoder.names_.index(column)]
                    )
                    form = self.relations.forms.get(column)
                    if form is not None:
                        values = pd.Series(form.correct(values.to_numpy(dtype=float)))
                    features[column] = values
                else:
                    solved = self.relations.derive(
                        name, relation, pd.DataFrame(features)
                    )
                    Z[:, encoder.names_.index(name)] = encoder.encode_column(
                        name, solved
                    )

        return derive

    def leaks(self) -> list[Note]:
        """Return a note for each relation from which the target can be read off."""
        notes = []
        for relation in self.mined.relations:
            if isinstance(relation, Dependency):
                told = [relation.target]
            elif isinstance(relation, Equation):
                told = list(relation.columns)
            else:
                continue
            targets = [name for name in told if name in self.target_names]
            if len(targets) != 1:
                continue
            [target] = targets
            sources = [name for name in relation.columns if name != target]
            words = {
                "target": target,
                "relation": relation.text,
                "flags": " ".join(f"--drop {name!r}" for name in sources),
            }
            notes.append(
                Note(kind="target read off", counts={"rows": self.n_rows}, words=words)
            )
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return what the manifest says of the relations."""
        listed = []
        for relation in self.relations.relations[:MOST_LISTED]:
            is_mined = np.isfinite(relation.evidence)
            listed.append(
                {
                    "rule": relation.text,
                    "kind": relation.kind,
                    "from": "mined" if is_mined else "declared",
                    "evidence": round(relation.evidence, 1) if is_mined else None,
                }
            )
        return {
            "rows": self.n_rows,
            "count": len(self.relations.relations),
            "list": listed,
            "left_out": self.mined.left_out,
            "frozen": list(self.relations.frozen),
            "one_way": dict(self.relations.one_way),
            "computed": list(self.relations.derived),
        }

    def _with_targets(self, features: pd.DataFrame, y: np.ndarray) -> pd.DataFrame:
        columns = {}
        for name, scale, values in zip(
            self.target_names, self.scales, y.T, strict=True
        ):
            columns[name] = scale.inverse(values, name).set_axis(features.index)
        return with_columns(features, columns)


def _joined_names(cells: np.ndarray, names: list[str]) -> np.ndarray:
    """Return for each row the names of its marked cells."""
    joined = np.full(len(cells), "", dtype=object)
    for row in np.flatnonzero(cells.any(axis=1)):
        joined[row] = ",".join(names[j] for j in np.flatnonzero(cells[row]))
    return joined


def check_declared_relations(tasks: Sequence[Task], config: RelationsConfig) -> None:
    """Refuse declared relations that do not fit a table, before anything is made.

    Parameters
    ----------
    tasks : sequence of Task
    config : RelationsConfig

    Raises
    ------
    ConfigError
        With the task's name, where there are several.
    """
    groups = group_tasks(tasks)
    for members in groups:
        targets = {task.target_name: task.target for task in members}
        table = with_columns(members[0].features, targets)
        try:
            declared_relations(config, table, tuple(targets))
        except ConfigError as error:
            if len(groups) == 1:
                raise
            problem = f"{members[0].name}: {error.args[0]}"
            raise ConfigError(
                problem, "make a suite of its own for this table"
            ) from None
