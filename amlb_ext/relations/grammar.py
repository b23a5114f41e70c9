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
from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.relations.conditions import (
    Condition,
    Evaluation,
    Number,
    Operation,
    calculate,
    compare_numbers,
    conjunction,
    disjunction,
    is_category,
    is_missing,
    is_same_category,
    negation,
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
_ARITHMETIC: dict[type[ast.operator], Operation] = {
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
    """A rule that cannot be used.

    Attributes
    ----------
    rule : str
        The rule as it was written, by which its line in a file is found.
    """

    def __init__(
        self,
        rule: str,
        problem: str,
        hint: str = "",
    ) -> None:
        shown = rule
        if len(rule) > LONGEST_SHOWN:
            shown = rule[: LONGEST_SHOWN - 3] + "..."
        super().__init__(f"the rule {shown!r} {problem}", hint)
        self.rule = rule


class MissingValue:
    """The literal ``missing``."""


MISSING = MissingValue()
LiteralValue = float | str | MissingValue


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
    if value is None:
        return "missing"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    number = float(value)
    if np.isnan(number):
        return "missing"
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
        side = text[start : match.start()]
        sides.append(side.strip())
        start = match.end()
    last_side = text[start:]
    sides.append(last_side.strip())
    return sides


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
    sides = split_at_word(text, "implies")
    if len(sides) > 2:
        raise RuleError(
            text,
            "has several 'implies'",
            "write one rule for each 'A implies B'",
        )
    parser = _Parser(text, columns)
    sides[-1] = parser.read_room(sides[-1])
    if parser.room and len(sides) > 1:
        raise parser.no_equality()
    evaluations = [parser.parse_side(side) for side in sides]
    if not parser.mentioned:
        raise RuleError(
            text,
            "names no column",
            "name at least one column of the table",
        )
    mentioned = tuple(parser.mentioned)
    if len(sides) == 2:
        premise, conclusion = evaluations
        holds = disjunction([negation(premise), conclusion])
        return Condition(text, mentioned, holds)
    return Condition(text, mentioned, evaluations[0], parser.tree)


class _Parser:
    """Turns Python's syntax tree of one rule into functions of a table."""

    def __init__(self, text: str, columns: Mapping[str, bool]) -> None:
        self.text = text
        self.columns = columns
        # a dict keeps the order of first mention
        self.mentioned: dict[str, None] = {}
        #: By how much the sides of an equality may differ.
        self.room = 0.0
        #: The side that was parsed last, with the names of columns.
        self.tree: ast.expr | None = None
        self._quoted_names: list[str] = []
        # stands for a name in backticks while Python parses; must not occur in the rule itself
        self._prefix = "quoted_"
        while self._prefix in text:
            self._prefix += "_"

    def read_room(self, side: str) -> str:
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
            raise self._rule_error(
                "has no number above 0 behind 'within'",
                "write for instance 'a + b == c within 0.01'",
            )
        return equality

    def no_equality(self) -> RuleError:
        """Return the error that a room stands behind something else than an equality."""
        return self._rule_error(
            "has 'within' behind something else than one equality of numbers",
            "write for instance 'a + b == c within 0.01'",
        )

    def parse_side(self, side: str) -> Evaluation:
        """Parse one side of an 'implies', or a whole rule."""
        self._quoted_names = []
        expression = _QUOTED.sub(self._replace_name, side).strip()
        try:
            tree = ast.parse(expression, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._rule_error("is not a condition") from None
        # the tree's root, which stands for the whole expression, is a level of its own
        if _tree_depth(tree) > DEEPEST_RULE + 1:
            raise self._rule_error(f"is nested deeper than {DEEPEST_RULE} levels")
        n_operations = sum(isinstance(node, ast.BinOp) for node in ast.walk(tree))
        if n_operations > MOST_OPERATIONS:
            raise self._rule_error(f"calculates more than {MOST_OPERATIONS} times")
        evaluation = self._parse_condition(tree.body)
        for name in _names_in_order(tree):
            column = self._find_column(name)
            if column is not None:
                self.mentioned[column] = None
                name.id = column
        self.tree = tree.body
        if self.room and not is_equality(self.tree):
            raise self.no_equality()
        return evaluation

    def _replace_name(self, quoted: re.Match[str]) -> str:
        """Replace a name in backticks by an identifier that Python can parse."""
        token = quoted[0]
        if not token.startswith("`"):
            return token
        name = token[1:-1]
        self._quoted_names.append(name.replace("``", "`"))
        position = len(self._quoted_names) - 1
        return f"{self._prefix}{position}"

    def _rule_error(self, problem: str, hint: str = "") -> RuleError:
        example = (
            "write for instance 'a <= b', 'a + b == c' or 'a == 0 implies b == \"no\"'"
        )
        return RuleError(self.text, problem, hint or example)

    # conditions

    def _parse_condition(self, node: ast.expr) -> Evaluation:
        if isinstance(node, ast.BoolOp):
            operands = [self._parse_condition(value) for value in node.values]
            if isinstance(node.op, ast.And):
                return conjunction(operands)
            return disjunction(operands)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = self._parse_condition(node.operand)
            return negation(operand)
        if isinstance(node, ast.Compare):
            return self._parse_chain(node)
        source = ast.unparse(node)
        raise self._rule_error(f"has {source!r} where a comparison is expected")

    def _parse_chain(self, node: ast.Compare) -> Evaluation:
        """``a <= b <= c`` is ``a <= b and b <= c``."""
        links = []
        left = node.left
        for comparator, right in zip(node.ops, node.comparators, strict=True):
            symbol = _COMPARISONS.get(type(comparator))
            if symbol is not None:
                links.append(self._parse_comparison(left, symbol, right))
            elif isinstance(comparator, ast.In):
                links.append(self._parse_membership(left, right))
            elif isinstance(comparator, ast.NotIn):
                links.append(negation(self._parse_membership(left, right)))
            else:
                raise self._rule_error("uses a comparison that is not allowed")
            left = right
        return conjunction(links)

    def _parse_membership(self, left: ast.expr, right: ast.expr) -> Evaluation:
        """``a in (b, c)`` is ``a == b or a == c``."""
        elements: list[ast.expr] = []
        if isinstance(right, (ast.Tuple, ast.List)):
            elements = right.elts
        if not elements:
            raise self._rule_error(
                "has 'in' without a list of values in round brackets"
            )
        members = [self._parse_comparison(left, "==", element) for element in elements]
        return disjunction(members)

    def _parse_comparison(
        self,
        left: ast.expr,
        symbol: str,
        right: ast.expr,
    ) -> Evaluation:
        # `missing` and a category may stand on either side
        for subject, other in ((left, right), (right, left)):
            if self._read_literal(other) is MISSING:
                return self._missing_test(subject, symbol)
            column = self._find_column(subject)
            if column is not None and not self.columns[column]:
                return self._category_test(column, symbol, other)
        left_number = self._parse_number(left)
        right_number = self._parse_number(right)
        return compare_numbers(left_number, symbol, right_number, self.room)

    def _missing_test(self, node: ast.expr, symbol: str) -> Evaluation:
        column = self._find_column(node)
        if column is None or symbol not in ("==", "!="):
            raise self._rule_error(
                "compares 'missing' in another way than '== missing'"
            )
        test = is_missing(column)
        return test if symbol == "==" else negation(test)

    def _category_test(
        self,
        column: str,
        symbol: str,
        other: ast.expr,
    ) -> Evaluation:
        if symbol not in ("==", "!="):
            raise self._rule_error(
                f"orders {column!r}, which holds texts", "use == or in (...)"
            )
        second = self._find_column(other)
        if second is None:
            literal = self._read_literal(other)
            if isinstance(literal, float):
                # categories that look like numbers, as "1", are texts in the table
                literal = quote_value(literal)
            if not isinstance(literal, str):
                raise self._rule_error(
                    f"compares {column!r} with something that is no text"
                )
            test = is_category(column, literal)
        elif self.columns[second]:
            raise self._rule_error(
                f"compares the texts of {column!r} with numbers of {second!r}"
            )
        else:
            test = is_same_category(column, second)
        return test if symbol == "==" else negation(test)

    # values

    def _find_column(self, node: ast.expr) -> str | None:
        """Return the column that a name stands for; None when it is no name."""
        if not isinstance(node, ast.Name):
            return None
        name = node.id
        if name == "missing":
            return None
        if name.startswith(self._prefix):
            position = int(name.removeprefix(self._prefix))
            name = self._quoted_names[position]
        if name not in self.columns:
            raise RuleError(
                self.text,
                f"names the column {name!r}, which the table does not have",
                suggest_nearest(name, self.columns),
            )
        return name

    def _read_literal(self, node: ast.expr) -> LiteralValue | None:
        """Return the value that is written out; None when a node is something else."""
        if isinstance(node, ast.Name) and node.id == "missing":
            return MISSING
        if isinstance(node, ast.UnaryOp):
            # Python's tree has ``-1`` as an operation on 1
            sign = _SIGNS.get(type(node.op))
            unsigned = self._read_literal(node.operand)
            if sign is None or not isinstance(unsigned, float):
                return None
            return sign * unsigned
        if not isinstance(node, ast.Constant):
            return None
        if isinstance(node.value, str):
            return node.value
        # True and False are integers for Python, but no numbers here
        if isinstance(node.value, bool):
            return None
        if not isinstance(node.value, (int, float)):
            return None
        try:
            return float(node.value)
        except OverflowError:
            raise self._rule_error("holds a number that is too large") from None

    def _parse_number(self, node: ast.expr) -> Number:
        column = self._find_column(node)
        if column is not None:
            if not self.columns[column]:
                raise self._rule_error(f"calculates with {column!r}, which holds texts")
            return lambda rows: rows[column].to_numpy(dtype=float)
        literal = self._read_literal(node)
        if isinstance(literal, float):
            # an array, because a division of Python's floats by zero raises
            constant = np.asarray(literal, dtype=float)
            return lambda rows: constant
        if isinstance(literal, str):
            raise self._rule_error(f"compares the text {literal!r} with a number")
        if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
            sign = _SIGNS[type(node.op)]
            unsigned = self._parse_number(node.operand)
            return lambda rows: sign * unsigned(rows)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            operation = _ARITHMETIC[type(node.op)]
            left = self._parse_number(node.left)
            right = self._parse_number(node.right)
            return calculate(operation, left, right)
        source = ast.unparse(node)
        raise self._rule_error(f"has {source!r}, which is not allowed")


def is_equality(tree: ast.expr | None) -> TypeGuard[ast.Compare]:
    """Return whether a condition is one ``==``."""
    if not isinstance(tree, ast.Compare):
        return False
    return [type(comparator) for comparator in tree.ops] == [ast.Eq]


def _names_in_order(node: ast.AST) -> list[ast.Name]:
    """Return the names of a tree from left to right, as they are written."""
    if isinstance(node, ast.Name):
        return [node]
    names = []
    for child in ast.iter_child_nodes(node):
        names += _names_in_order(child)
    return names


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
