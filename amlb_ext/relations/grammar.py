"""The language of relations: conditions on one row, parsed without ``eval``.

A condition is written as in Python: comparisons (``<= < == != >= >`` and ``in (...)``), ``and``,
``or``, ``not``, ``+ - * / %``, numbers, texts in quotes, ``missing``, and the names of columns. A
name that is no Python identifier stands in backticks. Two words are added: ``A implies B``, and
``a + b == c within 0.01`` for an equality of rounded numbers.

What a condition means on rows, missing values included: :mod:`amlb_ext.relations.conditions`.
"""

from __future__ import annotations

import ast
import json
import keyword
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TypeGuard

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.relations.conditions import (
    Condition,
    Truth,
    compare_numbers,
    compare_texts,
)

#: A longer rule, one with deeper brackets, or with more operations is refused.
LONGEST_RULE, DEEPEST_RULE, MOST_OPERATIONS = 1000, 20, 100
#: In a message, a longer rule is cut, so that the message stays one line.
LONGEST_SHOWN = 80

#: Words of the language that Python does not reserve.
RESERVED_WORDS = ("missing", "implies", "determines", "within")

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
_SIGNS: dict[type[ast.unaryop], float] = {
    ast.UAdd: 1.0,
    ast.USub: -1.0,
}
#: A name in backticks (a backtick in it is doubled), or a text in quotes: no keywords in these.
_QUOTED = re.compile(r"""`(?:[^`]|``)*`|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")


class RuleError(ConfigError):
    """A rule that cannot be used."""

    def __init__(self, rule: str, problem: str, hint: str = "") -> None:
        shown = rule
        if len(rule) > LONGEST_SHOWN:
            shown = rule[: LONGEST_SHOWN - 3] + "..."
        super().__init__(f"the rule {shown!r} {problem}", hint)


#: Stands for the word ``missing`` in a tree, and is no name of a column.
MISSING = "\x00missing"


def quote_name(column: str) -> str:
    """Return a column's name as the language writes it.

    Examples
    --------
    >>> quote_name("age"), quote_name("hours per week"), quote_name("not")
    ('age', '`hours per week`', '`not`')
    """
    is_reserved = keyword.iskeyword(column) or column in RESERVED_WORDS
    # Python reads some letters, such as ligatures, as others
    is_normal = unicodedata.normalize("NFKC", column) == column
    if column.isidentifier() and is_normal and not is_reserved:
        return column
    escaped = column.replace("`", "``")
    return f"`{escaped}`"


def quote_value(value: float | str | None) -> str:
    """Return a value as the language writes it: a number, a text in quotes, or ``missing``.

    Examples
    --------
    >>> quote_value(0.0), quote_value(2.5), quote_value("Husband"), quote_value(None)
    ('0', '2.5', '"Husband"', 'missing')
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or np.isnan(value):
        return "missing"
    number = float(value)
    # beyond 1e15 not every integer is a float, and the digits would promise too much
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def write_equality(column: str, value: float | str | None) -> str:
    """Return the condition that a column has a value.

    Examples
    --------
    >>> write_equality("hours per week", 40.0)
    '`hours per week` == 40'
    """
    return f"{quote_name(column)} == {quote_value(value)}"


def split_at_word(text: str, word: str) -> list[str]:
    """Split a text at a word that stands outside quotes and backticks.

    Examples
    --------
    >>> split_at_word('a == "b implies c" implies d == 1', "implies")
    ['a == "b implies c"', 'd == 1']
    """
    # of the same length, so that positions in it are positions in the text
    covered = _QUOTED.sub(lambda quoted: "\x00" * len(quoted[0]), text)
    sides = []
    start = 0
    for match in re.finditer(rf"\b{word}\b", covered):
        sides.append(text[start : match.start()].strip())
        start = match.end()
    return [*sides, text[start:].strip()]


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
    >>> import pandas as pd
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
    rule = _Rule(text, columns)
    # without rows nothing is compared, but what is no rule is found
    dtypes = {name: float if columns[name] else object for name in columns}
    rule.evaluate(pd.DataFrame(columns=list(columns)).astype(dtypes))
    if not rule.mentioned:
        raise RuleError(
            text,
            "names no column",
            "name at least one column of the table",
        )
    tree = rule.sides[0] if len(rule.sides) == 1 else None
    return Condition(text, tuple(rule.mentioned), rule.evaluate, tree)


class _Rule:
    """Python's syntax tree of a rule, or of both sides of its 'implies', and what it means."""

    def __init__(self, text: str, columns: Mapping[str, bool]) -> None:
        self.text = text
        self.columns = columns
        #: Columns in the order of their first mention.
        self.mentioned: dict[str, None] = {}
        #: By how much the sides of an equality may differ.
        self.room = 0.0
        # stands for a name in backticks while Python parses; must not occur in the rule itself
        self._prefix = "quoted_"
        while self._prefix in text:
            self._prefix += "_"
        self._quoted_names: list[str] = []
        sides = split_at_word(text, "implies")
        if len(sides) > 2:
            raise RuleError(
                text,
                "has several 'implies'",
                "write one rule for each 'A implies B'",
            )
        sides[-1] = self._read_room(sides[-1])
        self.sides = [self._parse_side(side) for side in sides]
        is_one_equality = len(sides) == 1 and is_equality(self.sides[0])
        if self.room and not is_one_equality:
            raise self._error(
                "has 'within' behind something else than one equality of numbers",
                "write for instance 'a + b == c within 0.01'",
            )

    def _read_room(self, side: str) -> str:
        """Take the room off an equality: ``a == b within 0.01``."""
        equality, *rooms = split_at_word(side, "within")
        if not rooms:
            return side
        try:
            [room] = rooms
            self.room = float(room)
        except ValueError:
            self.room = 0.0
        if not (0 < self.room < np.inf):
            raise self._error(
                "has no number above 0 behind 'within'",
                "write for instance 'a + b == c within 0.01'",
            )
        return equality

    def _parse_side(self, side: str) -> ast.expr:
        """Return the tree of a side, with the names of columns that stand in backticks."""
        expression = _QUOTED.sub(self._replace_name, side).strip()
        try:
            tree = ast.parse(expression, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("is not a condition") from None
        # the tree's root, which stands for the whole expression, is a level of its own
        if _tree_depth(tree) > DEEPEST_RULE + 1:
            raise self._error(f"is nested deeper than {DEEPEST_RULE} levels")
        n_operations = sum(isinstance(node, ast.BinOp) for node in ast.walk(tree))
        if n_operations > MOST_OPERATIONS:
            raise self._error(f"calculates more than {MOST_OPERATIONS} times")
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name):
                continue
            if node.id.startswith(self._prefix):
                node.id = self._quoted_names[int(node.id.removeprefix(self._prefix))]
            elif node.id == "missing":
                # no identifier, so that no column in backticks can have this name
                node.id = MISSING
        return tree.body

    def _replace_name(self, quoted: re.Match[str]) -> str:
        """Replace a name in backticks by an identifier that Python can parse."""
        token = quoted[0]
        if not token.startswith("`"):
            return token
        self._quoted_names.append(token[1:-1].replace("``", "`"))
        return f"{self._prefix}{len(self._quoted_names) - 1}"

    def _error(self, problem: str, hint: str = "") -> RuleError:
        example = (
            "write for instance 'a <= b', 'a + b == c' or 'a == 0 implies b == \"no\"'"
        )
        return RuleError(self.text, problem, hint or example)

    # what it means

    def evaluate(self, rows: pd.DataFrame) -> Truth:
        """Return what is known of the rule in each row."""
        *premises, conclusion = (self._truth(side, rows) for side in self.sides)
        return ~premises[0] | conclusion if premises else conclusion

    def _truth(self, node: ast.expr, rows: pd.DataFrame) -> Truth:
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return reduce(join, [self._truth(value, rows) for value in node.values])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._truth(node.operand, rows)
        if not isinstance(node, ast.Compare):
            source = ast.unparse(node)
            raise self._error(f"has {source!r} where a comparison is expected")
        # a <= b <= c is a <= b and b <= c
        links = []
        left = node.left
        for comparator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(comparator, (ast.In, ast.NotIn)):
                is_member = self._membership(left, right, rows)
                is_in = isinstance(comparator, ast.In)
                links.append(is_member if is_in else ~is_member)
            elif type(comparator) in _COMPARISONS:
                symbol = _COMPARISONS[type(comparator)]
                links.append(self._comparison(left, symbol, right, rows))
            else:
                raise self._error("uses a comparison that is not allowed")
            left = right
        return reduce(operator.and_, links)

    def _membership(self, left: ast.expr, right: ast.expr, rows: pd.DataFrame) -> Truth:
        """``a in (b, c)`` is ``a == b or a == c``."""
        elements = right.elts if isinstance(right, (ast.Tuple, ast.List)) else []
        if not elements:
            raise self._error("has 'in' without a list of values in round brackets")
        members = [self._comparison(left, "==", element, rows) for element in elements]
        return reduce(operator.or_, members)

    def _comparison(
        self, left: ast.expr, symbol: str, right: ast.expr, rows: pd.DataFrame
    ) -> Truth:
        # `missing` and a category may stand on either side
        for subject, other in ((left, right), (right, left)):
            if _is_missing_word(other):
                column = self._find_column(subject)
                if column is None or symbol not in ("==", "!="):
                    raise self._error(
                        "compares 'missing' in another way than '== missing'"
                    )
                missing = rows[column].isna().to_numpy()
                test = Truth(is_true=missing, is_false=~missing)
                return test if symbol == "==" else ~test
            column = self._find_column(subject)
            if column is not None and not self.columns[column]:
                return self._category_test(column, symbol, other, rows)
        shape = (len(rows),)
        # a literal is one number: it is stretched to one per row
        left_numbers = np.broadcast_to(self._number(left, rows), shape)
        right_numbers = np.broadcast_to(self._number(right, rows), shape)
        return compare_numbers(left_numbers, symbol, right_numbers, self.room)

    def _category_test(
        self, column: str, symbol: str, other: ast.expr, rows: pd.DataFrame
    ) -> Truth:
        if symbol not in ("==", "!="):
            raise self._error(
                f"orders {column!r}, which holds texts", "use == or in (...)"
            )
        second = self._find_column(other)
        if second is None:
            literal = self._literal(other)
            if literal is None:
                raise self._error(f"compares {column!r} with something that is no text")
            # categories that look like numbers, as "1", are texts in the table
            text = literal if isinstance(literal, str) else quote_value(literal)
            test = compare_texts(rows[column], text)
        elif self.columns[second]:
            raise self._error(
                f"compares the texts of {column!r} with numbers of {second!r}"
            )
        else:
            test = compare_texts(rows[column], rows[second])
        return test if symbol == "==" else ~test

    def _find_column(self, node: ast.expr) -> str | None:
        """Return the column that a name stands for; None when it is no name."""
        if not isinstance(node, ast.Name) or _is_missing_word(node):
            return None
        if node.id not in self.columns:
            raise RuleError(
                self.text,
                f"names the column {node.id!r}, which the table does not have",
                suggest_nearest(node.id, self.columns),
            )
        self.mentioned[node.id] = None
        return node.id

    def _literal(self, node: ast.expr) -> float | str | None:
        """Return the value that is written out; None when a node is something else."""
        if isinstance(node, ast.UnaryOp):
            # Python's tree has ``-1`` as an operation on 1
            sign = _SIGNS.get(type(node.op))
            unsigned = self._literal(node.operand)
            if sign is None or not isinstance(unsigned, float):
                return None
            return sign * unsigned
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str):
            return value
        # True and False are integers for Python, but no numbers here
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        try:
            return float(value)
        except OverflowError:
            raise self._error("holds a number that is too large") from None

    def _number(self, node: ast.expr, rows: pd.DataFrame) -> np.ndarray:
        """Return the numbers of a column or of a calculation, ``(n,)``, or a single literal."""
        column = self._find_column(node)
        if column is not None and not self.columns[column]:
            raise self._error(f"calculates with {column!r}, which holds texts")
        if column is not None:
            return rows[column].to_numpy(dtype=float)
        literal = self._literal(node)
        if isinstance(literal, str):
            raise self._error(f"compares the text {literal!r} with a number")
        if literal is not None:
            # an array, because a division of Python's floats by zero raises
            return np.asarray(literal, dtype=float)
        if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
            return _SIGNS[type(node.op)] * self._number(node.operand, rows)
        if not isinstance(node, ast.BinOp) or type(node.op) not in _ARITHMETIC:
            raise self._error(f"has {ast.unparse(node)!r}, which is not allowed")
        left, right = self._number(node.left, rows), self._number(node.right, rows)
        with np.errstate(all="ignore"):
            result = _ARITHMETIC[type(node.op)](left, right)
        # a division by zero is unknown, like a missing value
        return np.where(np.isfinite(result), result, np.nan)


def _is_missing_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == MISSING


def is_equality(tree: ast.expr | None) -> TypeGuard[ast.Compare]:
    """Return whether a condition is one ``==``."""
    if not isinstance(tree, ast.Compare):
        return False
    return [type(comparator) for comparator in tree.ops] == [ast.Eq]


def _tree_depth(node: ast.AST) -> int:
    """Return how many levels a tree has; a sum has one, however many terms it adds up."""
    terms = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        terms.append(node.right)
        node = node.left
    if terms:
        return 1 + max(_tree_depth(term) for term in (*terms, node))
    depths = [_tree_depth(child) for child in ast.iter_child_nodes(node)]
    return 1 + max(depths, default=0)
