"""The language of relations: conditions on one row, parsed and evaluated without ``eval``.

A condition is written as in Python: comparisons (``<= < == != >= >`` and ``in (...)``), ``and``,
``or``, ``not``, ``+ - * / %``, numbers, texts in quotes, ``missing``, and the names of columns. A
name that is no Python identifier stands in backticks. One word is added: ``A implies B``.

Missing values follow SQL's CHECK: a comparison with a missing value is unknown, and a row breaks a
condition only where it is false. ``column == missing`` is never unknown.
"""

from __future__ import annotations

import ast
import json
import keyword
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError, suggest_nearest

#: A longer rule, or one with deeper brackets, is refused.
LONGEST_RULE, DEEPEST_RULE = 500, 20

#: Numbers that differ by less than this share of their size count as equal: what a value may lose
#: on its way through the scaling of a column and back.
TOLERANCE = 1e-9

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.LtE: "<=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ARITHMETIC: dict[
    type[ast.operator], Callable[[np.ndarray, np.ndarray], np.ndarray]
] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
#: A name in backticks (a backtick in it is doubled), or a text in quotes: no keywords in these.
_QUOTED = re.compile(r"""`(?:[^`]|``)*`|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")


@dataclass(frozen=True)
class Truth:
    """What is known of a condition in each row: it is true, it is false, or neither is known.

    Attributes
    ----------
    is_true, is_false : ndarray of shape (n,), bool
    """

    is_true: np.ndarray
    is_false: np.ndarray

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.is_true & other.is_true, self.is_false | other.is_false)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.is_true | other.is_true, self.is_false & other.is_false)

    def __invert__(self) -> Truth:
        return Truth(self.is_false, self.is_true)


Evaluate = Callable[[pd.DataFrame], Truth]
Number = Callable[[pd.DataFrame], np.ndarray]


@dataclass(frozen=True)
class Condition:
    """A condition on rows.

    Attributes
    ----------
    text : str
        As it was written.
    columns : tuple of str
        The columns that it names, in the order of their first mention.
    evaluate : callable
        Rows to :class:`Truth`.
    """

    text: str
    columns: tuple[str, ...]
    evaluate: Evaluate = field(repr=False, compare=False)

    def breaks(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows break the condition, ``(n,)`` bool."""
        return self.evaluate(rows).is_false


class RuleError(ConfigError):
    """A rule that cannot be used.

    Attributes
    ----------
    rule : str
        The rule as it was written, by which its line in a file is found.
    """

    def __init__(self, rule: str, problem: str, hint: str = "") -> None:
        shown = rule if len(rule) <= 80 else f"{rule[:77]}..."
        super().__init__(f"the rule {shown!r} {problem}", hint)
        self.rule = rule


class MissingValue:
    """The literal ``missing``."""


MISSING = MissingValue()
Literal = float | str | MissingValue


def quote_name(column: str) -> str:
    """Return a column's name as the language writes it.

    Examples
    --------
    >>> quote_name("age"), quote_name("hours per week"), quote_name("not")
    ('age', '`hours per week`', '`not`')
    """
    reserved = keyword.iskeyword(column) or column in (
        "missing",
        "implies",
        "determines",
    )
    # Python reads some letters, such as ligatures, as others
    is_plain = column.isidentifier() and unicodedata.normalize("NFKC", column) == column
    return (
        column if is_plain and not reserved else "`" + column.replace("`", "``") + "`"
    )


def quote_value(value: float | str | None) -> str:
    """Return a value as the language writes it: a number, a text in quotes, or ``missing``.

    Examples
    --------
    >>> quote_value(0.0), quote_value(2.5), quote_value("Husband"), quote_value(None)
    ('0', '2.5', '"Husband"', 'missing')
    """
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "missing"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    number = float(value)
    return (
        str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    )


def split_at_word(text: str, word: str) -> list[str]:
    """Split a text at a word that stands outside quotes and backticks.

    Examples
    --------
    >>> split_at_word('a == "b implies c" implies d == 1', "implies")
    ['a == "b implies c"', 'd == 1']
    """
    covered = _QUOTED.sub(lambda quoted: "\x00" * len(quoted[0]), text)
    parts, start = [], 0
    for match in re.finditer(rf"\b{word}\b", covered):
        parts.append(text[start : match.start()].strip())
        start = match.end()
    return [*parts, text[start:].strip()]


def parse_condition(text: str, columns: Mapping[str, bool]) -> Condition:
    """Parse a condition.

    Parameters
    ----------
    text : str
    columns : mapping of str to bool
        The table's columns, and whether each holds numbers.

    Returns
    -------
    Condition

    Raises
    ------
    RuleError
        The text is no condition, is too long or too deep, names a column that is not there (with
        the nearest name), or compares texts with numbers.

    Examples
    --------
    >>> rows = pd.DataFrame({"rooms": [3.0, 5.0, 2.0], "bedrooms": [1.0, 6.0, np.nan]})
    >>> condition = parse_condition("bedrooms <= rooms", {"rooms": True, "bedrooms": True})
    >>> condition.breaks(rows).tolist()
    [False, True, False]
    """
    if len(text) > LONGEST_RULE:
        raise RuleError(
            text,
            f"has {len(text):,} characters; at most {LONGEST_RULE} are allowed",
            "split it into several rules",
        )
    sides = split_at_word(text, "implies")
    if len(sides) > 2:
        raise RuleError(
            text, "has several 'implies'", "write one rule for each 'A implies B'"
        )
    parser = _Parser(text, columns)
    evaluations = [parser.parse(side) for side in sides]
    if not parser.mentioned:
        raise RuleError(
            text, "names no column", "name at least one column of the table"
        )
    if len(sides) == 1:
        return Condition(text, tuple(parser.mentioned), evaluations[0])
    premise, conclusion = evaluations
    return Condition(
        text, tuple(parser.mentioned), lambda rows: ~premise(rows) | conclusion(rows)
    )


class _Parser:
    """Turns Python's syntax tree of one rule into functions of a table."""

    def __init__(self, text: str, columns: Mapping[str, bool]) -> None:
        self.text = text
        self.columns = columns
        # a dict keeps the order of first mention
        self.mentioned: dict[str, None] = {}
        self._quoted_names: list[str] = []
        # stands for a name in backticks while Python parses; must not occur in the rule itself
        self._prefix = "quoted_"
        while self._prefix in text:
            self._prefix += "_"

    def parse(self, side: str) -> Evaluate:
        """Parse one side of an 'implies', or a whole rule."""
        self._quoted_names = []
        try:
            tree = ast.parse(_QUOTED.sub(self._placeholder, side).strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("is not a condition") from None
        if _depth(tree) > DEEPEST_RULE + 1:
            raise self._error(f"is nested deeper than {DEEPEST_RULE} levels")
        condition = self._condition(tree.body)
        for name in _names_in_order(tree):
            column = self._column(name)
            if column is not None:
                self.mentioned[column] = None
        return condition

    def _placeholder(self, quoted: re.Match[str]) -> str:
        """Replace a name in backticks by an identifier that Python can parse."""
        if not quoted[0].startswith("`"):
            return quoted[0]
        self._quoted_names.append(quoted[0][1:-1].replace("``", "`"))
        return f"{self._prefix}{len(self._quoted_names) - 1}"

    def _error(self, problem: str, hint: str = "") -> RuleError:
        return RuleError(
            self.text,
            problem,
            hint
            or "write for instance 'a <= b', 'a + b == c' or 'a == 0 implies b == \"no\"'",
        )

    # conditions

    def _condition(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.BoolOp):
            return self._combination(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._condition(node.operand)
            return lambda rows: ~inner(rows)
        if isinstance(node, ast.Compare):
            return self._chain(node)
        raise self._error(f"has {ast.unparse(node)!r} where a comparison is expected")

    def _combination(self, node: ast.BoolOp) -> Evaluate:
        parts = [self._condition(value) for value in node.values]
        combine = operator.and_ if isinstance(node.op, ast.And) else operator.or_

        def evaluate(rows: pd.DataFrame) -> Truth:
            result = parts[0](rows)
            for part in parts[1:]:
                result = combine(result, part(rows))
            return result

        return evaluate

    def _chain(self, node: ast.Compare) -> Evaluate:
        """``a <= b <= c`` is ``a <= b and b <= c``."""
        operands = [node.left, *node.comparators]
        parts = []
        for position, op in enumerate(node.ops):
            left, right = operands[position], operands[position + 1]
            if isinstance(op, (ast.In, ast.NotIn)):
                parts.append(self._membership(left, right, isinstance(op, ast.NotIn)))
            elif type(op) in _COMPARISONS:
                parts.append(self._comparison(left, _COMPARISONS[type(op)], right))
            else:
                raise self._error("uses a comparison that is not allowed")

        def evaluate(rows: pd.DataFrame) -> Truth:
            result = parts[0](rows)
            for part in parts[1:]:
                result = result & part(rows)
            return result

        return evaluate

    def _membership(self, left: ast.expr, right: ast.expr, negated: bool) -> Evaluate:
        if not isinstance(right, (ast.Tuple, ast.List)) or not right.elts:
            raise self._error("has 'in' without a list of values in round brackets")
        parts = [self._comparison(left, "==", element) for element in right.elts]

        def evaluate(rows: pd.DataFrame) -> Truth:
            result = parts[0](rows)
            for part in parts[1:]:
                result = result | part(rows)
            return ~result if negated else result

        return evaluate

    def _comparison(self, left: ast.expr, symbol: str, right: ast.expr) -> Evaluate:
        for one, other in ((left, right), (right, left)):
            literal = self._literal(other)
            if literal is MISSING:
                return self._is_missing(one, symbol)
            column = self._column(one)
            if column is not None and not self.columns[column]:
                return self._compare_category(column, symbol, other)
        return self._compare_numbers(self._number(left), symbol, self._number(right))

    def _is_missing(self, node: ast.expr, symbol: str) -> Evaluate:
        column = self._column(node)
        if column is None or symbol not in ("==", "!="):
            raise self._error("compares 'missing' in another way than '== missing'")

        def evaluate(rows: pd.DataFrame) -> Truth:
            is_missing = rows[column].isna().to_numpy()
            truth = Truth(is_missing, ~is_missing)
            return truth if symbol == "==" else ~truth

        return evaluate

    def _compare_category(self, column: str, symbol: str, other: ast.expr) -> Evaluate:
        if symbol not in ("==", "!="):
            raise self._error(
                f"orders {column!r}, which holds texts", "use == or in (...)"
            )
        second = self._column(other)
        if second is not None:
            if self.columns[second]:
                raise self._error(
                    f"compares the texts of {column!r} with numbers of {second!r}"
                )
            compare = _two_categories(column, second)
        else:
            literal = self._literal(other)
            if literal is None or literal is MISSING:
                raise self._error(f"compares {column!r} with something that is no text")
            # categories that look like numbers, as "1", are texts in the table
            text = literal if isinstance(literal, str) else quote_value(float(literal))  # type: ignore[arg-type]
            compare = _category_is(column, text)
        return compare if symbol == "==" else (lambda rows: ~compare(rows))

    def _compare_numbers(self, left: Number, symbol: str, right: Number) -> Evaluate:
        def evaluate(rows: pd.DataFrame) -> Truth:
            a, b = np.broadcast_arrays(left(rows), right(rows), np.empty(len(rows)))[:2]
            with np.errstate(invalid="ignore"):
                room = TOLERANCE * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
                is_equal = np.abs(a - b) <= room
                is_less = (a < b) & ~is_equal
                is_greater = (a > b) & ~is_equal
            holds = {
                "<=": is_less | is_equal,
                "<": is_less,
                ">=": is_greater | is_equal,
                ">": is_greater,
                "==": is_equal,
                "!=": is_less | is_greater,
            }[symbol]
            known = is_less | is_equal | is_greater
            return Truth(holds, known & ~holds)

        return evaluate

    # values

    def _column(self, node: ast.expr) -> str | None:
        """Return the column that a name stands for; None when it is no name."""
        if not isinstance(node, ast.Name) or node.id == "missing":
            return None
        name = node.id
        if name.startswith(self._prefix):
            name = self._quoted_names[int(name.removeprefix(self._prefix))]
        if name not in self.columns:
            raise RuleError(
                self.text,
                f"names the column {name!r}, which the table does not have",
                suggest_nearest(name, self.columns),
            )
        return name

    def _literal(self, node: ast.expr) -> Literal | None:
        if isinstance(node, ast.Name) and node.id == "missing":
            return MISSING
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self._literal(node.operand)
            if isinstance(value, float):
                return -value if isinstance(node.op, ast.USub) else value
            return None
        # True and False are integers for Python, but no numbers here
        is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if is_number:
            try:
                return float(node.value)  # type: ignore[attr-defined]
            except OverflowError:
                raise self._error("holds a number that is too large") from None
        return None

    def _number(self, node: ast.expr) -> Number:
        column = self._column(node)
        if column is not None:
            if not self.columns[column]:
                raise self._error(f"calculates with {column!r}, which holds texts")
            return lambda rows: rows[column].to_numpy(dtype=float)
        literal = self._literal(node)
        if isinstance(literal, float):
            value = np.float64(literal)
            return lambda rows: np.asarray(value)
        if isinstance(literal, str):
            raise self._error(f"compares the text {literal!r} with a number")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self._number(node.operand)
            sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
            return lambda rows: sign * inner(rows)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._arithmetic(node, _ARITHMETIC[type(node.op)])
        raise self._error(f"has {ast.unparse(node)!r}, which is not allowed")

    def _arithmetic(
        self, node: ast.BinOp, calculate: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> Number:
        left, right = self._number(node.left), self._number(node.right)

        def evaluate(rows: pd.DataFrame) -> np.ndarray:
            with np.errstate(all="ignore"):
                result = np.asarray(calculate(left(rows), right(rows)), dtype=float)
            # a division by zero is unknown, like a missing value
            return np.where(np.isfinite(result), result, np.nan)

        return evaluate


def _category_is(column: str, text: str) -> Evaluate:
    def evaluate(rows: pd.DataFrame) -> Truth:
        values = rows[column]
        is_missing = values.isna().to_numpy()
        is_equal = (values == text).to_numpy(dtype=bool, na_value=False) & ~is_missing
        return Truth(is_equal, ~is_equal & ~is_missing)

    return evaluate


def _two_categories(first: str, second: str) -> Evaluate:
    def evaluate(rows: pd.DataFrame) -> Truth:
        # two columns may have different categories, so their texts are compared
        left, right = rows[first].astype(object), rows[second].astype(object)
        is_missing = (left.isna() | right.isna()).to_numpy()
        is_equal = (left == right).to_numpy(dtype=bool) & ~is_missing
        return Truth(is_equal, ~is_equal & ~is_missing)

    return evaluate


def _names_in_order(node: ast.AST) -> list[ast.Name]:
    """Return the names of a tree from left to right, as they are written."""
    if isinstance(node, ast.Name):
        return [node]
    return [
        name for child in ast.iter_child_nodes(node) for name in _names_in_order(child)
    ]


def _depth(node: ast.AST) -> int:
    return 1 + max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
