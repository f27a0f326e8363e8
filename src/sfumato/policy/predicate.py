"""Predicates on quasi-identifiers: SQL-like conditions as unions of rectangles [LDR08, section 3.2].

::

    condition   and, or, not, ( )
    comparison  column = <> != < <= > >= value, column [not] between value and value
                column [not] in (value, ...), column is [not] null
    value       40, -0.5, 1e3; 'text', with '' for a quote in it; '2020-01-31' for a date
    column      age, marital-status, or "any name at all"

Anything else (two columns compared, arithmetic, functions, LIKE, subqueries) draws no rectangle and is
refused. The logic is SQL's: a comparison with a missing cell is never true, nor is its negation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from sfumato.errors import PolicyError, did_you_mean, short
from sfumato.policy.hierarchy.declarations import Given
from sfumato.policy.kinds import read_day
from sfumato.policy.rectangles import (
    ANY_NUMBER,
    GREATEST,
    LEAST,
    MISSING_ALONE,
    Interval,
    Labels,
    Rectangle,
    Side,
    above,
    below,
)
from sfumato.policy.schema import Attribute, Kind, Role, Schema

MAX_RECTANGLES = 1_000
MAX_PAIRS = 250_000
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition as its author wrote it, and the rectangles whose union it is.

    They may overlap. There is none where the condition contradicts itself.
    """

    text: str
    rectangles: tuple[Rectangle, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it asks about, in the order in which they appear."""
        return tuple(dict.fromkeys(name for rectangle in self.rectangles for name in rectangle.sides))


def parse(where: str, schema: Schema) -> Predicate:
    """The predicate in a text; a PolicyError says what is wrong with one that is none.

    >>> schema = Schema.of(age={"role": "quasi-identifier", "kind": "number"}, sex="quasi-identifier")
    >>> for rectangle in parse("age between 40 and 49 or not (sex = 'Male' or age >= 20)", schema).rectangles:
    ...     print(rectangle.sides["age"], rectangle.sides.get("sex"))
    Interval(low=40.0, high=49.0) None
    Interval(low=-1.7976931348623157e+308, high=19.999999999999996) Labels(labels=..., is_complement=True)
    """
    if not isinstance(where, str):
        raise PolicyError("A predicate must be a text such as \"age >= 40 and sex = 'Male'\".")
    return Predicate(where, tuple(_Parser(_tokens(where), schema).predicate()))


# ---- words -----------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"""
      (?P<number>  (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w) )
    | (?P<text>    '(?:[^']|'')*' )
    | (?P<quoted>  "(?:[^"]|"")*" )
    | (?P<name>    [^\W\d](?:[\w.-]*\w)? )
    | (?P<compare> <>|!=|<=|>=|=|<|> )
    | (?P<mark>    [(),] )
    | (?P<sign>    [+-] )
    | (?P<other>   \S )
    """,
    re.VERBOSE,
)
_WORDS = frozenset({"and", "or", "not", "between", "in", "is", "null"})
_PATTERNS = frozenset({"like", "ilike", "glob", "similar", "regexp", "rlike", "match"})
_QUERIES = frozenset({"select", "exists", "any", "all", "some"})
_ARITHMETIC = frozenset("+-*/%|^&")


def _tokens(where: str) -> list[_Token]:
    tokens = []
    for found in _TOKEN.finditer(where):
        kind, text = str(found.lastgroup), found.group()
        if kind == "other" and text in "'\"":
            _refuse(
                "has a quote that is never closed", found.start() + 1, "close it, or write '' for a quote"
            )
        word = text.lower()
        if kind == "name" and word in _WORDS:
            kind, text = "word", word
        if kind in ("text", "quoted"):
            text = text[1:-1].replace(text[0] * 2, text[0])
        tokens.append(_Token(kind, text, found.start() + 1))
    return [*tokens, _Token("end", "", len(where) + 1)]


def _refuse(what: str, at: int, way_out: str) -> NoReturn:
    raise PolicyError(f"The predicate {what} (character {at}); {way_out}.")


# ---- conditions ------------------------------------------------------------------------------------

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(slots=True)
class _Parser:
    """Reads tokens into rectangles at once; ``negated`` carries each NOT down to the comparisons.

    That is right in SQL's logic too: NOT of a comparison is the opposite comparison, and both are never
    true of a missing cell.
    """

    tokens: Sequence[_Token]
    schema: Schema
    place: int = field(default=0)
    depth: int = field(default=0)

    def predicate(self) -> list[Rectangle]:
        if self.next.kind == "end":
            raise PolicyError("The predicate is empty; write a condition such as age >= 40.")
        found = self.condition(negated=False)
        if self.next.kind != "end":
            self.refuse_next("the end, AND or OR")
        return found

    # -- walking --

    @property
    def next(self) -> _Token:
        return self.tokens[self.place]

    def take(self) -> _Token:
        token = self.next
        self.place += token.kind != "end"
        return token

    def takes(self, kind: str, text: str) -> bool:
        found = self.next.kind == kind and self.next.text == text
        self.place += found
        return found

    def must_take(self, kind: str, text: str) -> None:
        if not self.takes(kind, text):
            self.refuse_next(text.upper() if kind == "word" else text)

    def refuse_next(self, wanted: str) -> NoReturn:
        """Refuse the next token: with the reason where it belongs to what SQL has and rectangles do not."""
        token = self.next
        if token.kind == "end":
            _refuse("ends too early", token.at, f"write {wanted} there")
        if token.kind == "sign" or token.text in _ARITHMETIC:
            _refuse("does arithmetic, which draws no rectangle", token.at, "compare a column with a value")
        if token.kind == "name" and token.text.lower() in _PATTERNS:
            _refuse("asks for a pattern, which draws no rectangle", token.at, "list the values with IN")
        if token.kind == "name" and token.text.lower() in _QUERIES:
            _refuse("holds a query of its own, which draws no rectangle", token.at, "write out its values")
        _refuse("cannot be read", token.at, f"write {wanted} there")

    # -- and, or, not --

    def condition(self, *, negated: bool) -> list[Rectangle]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            _refuse(f"is nested more than {MAX_DEPTH} deep", self.next.at, "leave out parentheses")
        found = [self.conjunction(negated=negated)]
        while self.takes("word", "or"):
            found.append(self.conjunction(negated=negated))
        self.depth -= 1
        return _conjunction(found) if negated else _disjunction(found)

    def conjunction(self, *, negated: bool) -> list[Rectangle]:
        found = [self.factor(negated=negated)]
        while self.takes("word", "and"):
            found.append(self.factor(negated=negated))
        return _disjunction(found) if negated else _conjunction(found)

    def factor(self, *, negated: bool) -> list[Rectangle]:
        while self.takes("word", "not"):
            negated = not negated
        if self.takes("mark", "("):
            found = self.condition(negated=negated)
            self.must_take("mark", ")")
            return found
        name, sides = self.comparison(negated=negated)
        return [Rectangle({name: side}) for side in sides if side]

    # -- comparisons --

    def comparison(self, *, negated: bool) -> tuple[str, list[Side]]:
        if self.next.kind in ("number", "text", "sign"):
            return self.flipped_comparison(negated=negated)
        attribute = self.column()
        if self.takes("word", "is"):
            is_null = self.takes("word", "not") == negated
            self.must_take("word", "null")
            return attribute.name, [_missing(attribute) if is_null else _any_value(attribute)]
        negated ^= self.takes("word", "not")
        if self.takes("word", "between"):
            at = self.next.at
            low = self.value(attribute)
            self.must_take("word", "and")
            return attribute.name, _range(attribute, low, self.value(attribute), at, negated=negated)
        if self.takes("word", "in"):
            self.must_take("mark", "(")
            values = [self.value(attribute)]
            while self.takes("mark", ","):
                values.append(self.value(attribute))
            self.must_take("mark", ")")
            return attribute.name, _among(attribute, values, negated=negated)
        sign, at = self.sign()
        return attribute.name, _compare(attribute, sign, self.value(attribute), at, negated=negated)

    def flipped_comparison(self, *, negated: bool) -> tuple[str, list[Side]]:
        """A comparison whose value stands first, as in ``40 <= age``."""
        first = self.place
        self.literal()
        sign, at = self.sign()
        if self.next.kind in ("number", "text", "sign"):
            _refuse("compares two values", at, "name a column on one side")
        attribute = self.column()
        after, self.place = self.place, first
        value = self.value(attribute, after=after)
        return attribute.name, _compare(attribute, _FLIPPED.get(sign, sign), value, at, negated=negated)

    def sign(self) -> tuple[str, int]:
        if self.next.kind != "compare":
            self.refuse_next("a comparison such as =")
        token = self.take()
        return "<>" if token.text == "!=" else token.text, token.at

    def column(self) -> Attribute:
        token = self.next
        if token.kind not in ("name", "quoted") or (
            token.kind == "name" and token.text.lower() in _QUERIES and token.text not in self.schema
        ):
            self.refuse_next("a column, a value or a parenthesis")
        self.take()
        if token.kind == "name" and (self.next.kind, self.next.text) == ("mark", "("):
            _refuse("calls a function, which draws no rectangle", token.at, "compare a column with a value")
        return _quasi_identifier(token, self.schema)

    def literal(self) -> _Token:
        """A number, with its sign, or a text."""
        sign = self.take() if self.next.kind == "sign" else None
        token = self.next
        if token.kind == "number" or (token.kind == "text" and sign is None):
            self.take()
            return token._replace(text=f"{sign.text if sign else ''}{token.text}")
        if sign is not None:
            _refuse("does arithmetic, which draws no rectangle", sign.at, "compare a column with a value")
        if (token.kind, token.text) == ("word", "null"):
            _refuse("compares with NULL, which is never true", token.at, "write IS NULL or IS NOT NULL")
        if token.kind in ("name", "quoted") and token.text.lower() not in _QUERIES:
            if token.text in self.schema:
                what = "compares two columns, which draws no rectangle"
                _refuse(what, token.at, "compare each with a value")
            _refuse("has a name where a value must stand", token.at, "write a text in 'single quotes'")
        return self.refuse_next("a value such as 40 or 'Male'")

    def value(self, attribute: Attribute, *, after: int | None = None) -> Any:
        """A literal as the attribute's kind reads it: a float, a text, or the set of texts under a node."""
        token = self.literal()
        value = _read(token, attribute)
        if after is not None:
            self.place = after
        if self.next.kind == "sign" or (self.next.kind == "other" and self.next.text in _ARITHMETIC):
            self.refuse_next("the end, AND or OR")
        return value


def _disjunction(parts: list[list[Rectangle]]) -> list[Rectangle]:
    return _distinct(rectangle for part in parts for rectangle in part)


def _conjunction(parts: list[list[Rectangle]]) -> list[Rectangle]:
    found, *others = parts
    for other in others:
        if len(found) * len(other) > MAX_PAIRS:
            _too_many()
        found = _distinct(both for a in found for b in other if (both := a & b))
    return found


def _distinct(rectangles: Iterable[Rectangle]) -> list[Rectangle]:
    found = {frozenset(rectangle.sides.items()): rectangle for rectangle in rectangles}
    if len(found) > MAX_RECTANGLES:
        _too_many()
    return list(found.values())


def _too_many() -> NoReturn:
    raise PolicyError(
        f"The predicate is a union of more than {MAX_RECTANGLES:,} rectangles; ask for less at once."
    )


# ---- sides -----------------------------------------------------------------------------------------


def _missing(attribute: Attribute) -> Side:
    return Labels(frozenset({None})) if attribute.kind is Kind.CATEGORY else MISSING_ALONE


def _any_value(attribute: Attribute) -> Side:
    is_category = attribute.kind is Kind.CATEGORY
    return Labels(frozenset({None}), is_complement=True) if is_category else ANY_NUMBER


def _compare(attribute: Attribute, sign: str, value: Any, at: int, *, negated: bool) -> list[Side]:
    sign = _OPPOSITE[sign] if negated else sign
    if sign in ("=", "<>"):
        return _among(attribute, [value], negated=sign == "<>")
    _check_order(attribute, at)
    sides: dict[str, Callable[[], Side]] = {
        "<": lambda: Interval(LEAST, below(value)),
        "<=": lambda: Interval(LEAST, value),
        ">": lambda: Interval(above(value), GREATEST),
        ">=": lambda: Interval(value, GREATEST),
    }
    return [sides[sign]()]


def _range(attribute: Attribute, low: Any, high: Any, at: int, *, negated: bool) -> list[Side]:
    _check_order(attribute, at)
    if negated:
        return [Interval(LEAST, below(low)), Interval(above(high), GREATEST)] if low <= high else [ANY_NUMBER]
    return [Interval(low, high)]


def _among(attribute: Attribute, values: list[Any], *, negated: bool) -> list[Side]:
    if attribute.kind is Kind.CATEGORY:
        labels = frozenset[str | None]().union(*values)
        return [Labels(labels | {None}, is_complement=True) if negated else Labels(labels)]
    points = sorted(set(values))
    if not negated:
        return [Interval(point, point) for point in points]
    first, last = Interval(LEAST, below(points[0])), Interval(above(points[-1]), GREATEST)
    return [first, *(Interval(above(one), below(next_)) for one, next_ in pairwise(points)), last]


def _check_order(attribute: Attribute, at: int) -> None:
    if attribute.kind is Kind.CATEGORY:
        what = f"puts column {attribute.name!r} in an order, and a category has none"
        _refuse(what, at, "list its values with IN")


# ---- columns and values ----------------------------------------------------------------------------


def _quasi_identifier(token: _Token, schema: Schema) -> Attribute:
    name = token.text
    attribute = schema.find(name)
    if attribute is None:
        names = [attribute.name for attribute in schema.quasi_identifiers]
        alike = [known for known in names if known.casefold() == name.casefold()]
        hint = f" Did you mean {alike[0]!r}?" if alike else did_you_mean(name, names)
        raise PolicyError(
            f"The predicate asks for column {short(name)} (character {token.at}), "
            f"which the policy does not name.{hint}"
        )
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise PolicyError(
            f"The predicate asks for column {short(name)} (character {token.at}), which has the role "
            f"{attribute.role}; only quasi-identifiers can be selected by."
        )
    return attribute


def _read(token: _Token, attribute: Attribute) -> Any:
    if attribute.kind is Kind.CATEGORY:
        return _category(token, attribute)
    if attribute.kind is Kind.DATE:
        return _days(token, attribute)
    if token.kind != "number":
        what = f"compares the number {attribute.name!r} with a text"
        _refuse(what, token.at, "write a number without quotes")
    value = float(token.text)
    if not abs(value) < GREATEST:
        _refuse("has a number that is too large", token.at, "write a smaller one")
    return value + 0.0  # -0.0 is 0.0


def _days(token: _Token, attribute: Attribute) -> float:
    try:
        if token.kind == "text" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", token.text):
            return float(read_day(token.text))
    except ValueError:
        pass
    what = f"compares the date {attribute.name!r} with what is no date"
    _refuse(what, token.at, "write one such as '2020-01-31'")


def _category(token: _Token, attribute: Attribute) -> frozenset[str | None]:
    """The texts that a label stands for: itself, or the leaves under it in the declared hierarchy."""
    name, label = attribute.name, token.text
    if token.kind != "text":
        _refuse(f"compares the category {name!r} with a number", token.at, "write it in 'single quotes'")
    if label == "" or label in attribute.missing_values:
        what = f"compares column {name!r} with a text that stands for a missing value"
        _refuse(what, token.at, "write IS NULL or IS NOT NULL")
    declared = attribute.hierarchy
    if declared is not None and declared.is_masked(label):
        what = f"compares column {name!r} with a label of several values, which only the table knows"
        _refuse(what, token.at, "list the values with IN")
    if not isinstance(declared, Given):
        known = attribute.values
        if known is not None and label not in known:
            _refuse_unknown(attribute, token)
        return frozenset({label})
    tree = declared.tree
    leaves = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
    if label in leaves:
        return frozenset({label})
    nodes = [node for node, known in enumerate(tree.labels) if known == label]
    if not nodes:
        _refuse_unknown(attribute, token)
    under = [leaf for node in nodes for leaf in leaves[tree.low[node] : tree.high[node]]]
    return frozenset(under) - {None}


def _refuse_unknown(attribute: Attribute, token: _Token) -> NoReturn:
    what = f"names a value that column {attribute.name!r} does not declare"
    _refuse(what, token.at, "check how it is spelled")
