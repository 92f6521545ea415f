"""The language of filters: a line of text to a predicate of `brokers.search`. Pure.

By hand and by recursive descent, with no expression of anybody's ever run. `partition` is decided
here for each partition before it is searched, so that its tree asks about records only.

    filter    = all { "or" all }
    all       = one { [ "and" ] one }
    one       = "not" one | "(" filter ")" | condition | word
    condition = "partition" sign number | "timestamp" sign time
              | "header" name ( "=" | "!=" ) text | "header" name "exists"
              | ( "key" | "value" ) [ path ] ( sign literal | "contains" text | "exists" )
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple, TypeAlias

from console.messages.filter_words import Kind, Token, tokens_of, unquoted
from console.messages.question import MAX_INT64, NUMBER, BadQuestion, time_of
from gateway import moments

Tree: TypeAlias = Any

# A broker's limits: levels of a predicate, and conditions, including those that join others.
MAX_DEPTH: Final = 16
MAX_CONDITIONS: Final = 64
MAX_STEPS: Final = 32
MAX_NEEDLE: Final = 4_096
# Numbers with more digits hardly occur in records.
MAX_DIGITS: Final = 40
INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
FRACTION: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
STEP: Final = re.compile(
    r'\.(?P<name>[^.\[\]]+)|\[(?P<index>-?[0-9]{1,9})\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]'
)
SIGNS: Final = {"=": "==", "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
CONTAINS: Final = {"contains": False, "icontains": True}
CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
SIDES: Final = ("key", "value")
EXAMPLE: Final = 'value contains "refused" and value.order.id > 100'


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A parsed filter. `text` is its normalized form, without ambiguities."""

    text: str
    # As it was typed, except that each time means the same moment to every reader.
    absolute: str
    tree: Tree
    # No record before the first one of this time can match; None: any record can.
    since_ms: int | None = None

    def of(self, partition: int) -> Tree:
        """Return the predicate for one partition: True for every record, False for none."""
        return _folded(self.tree, partition)


class Node(NamedTuple):
    """A part of a filter: as a tree, and as text."""

    tree: Tree
    text: str


def filter_of(text: str, *, zone: tzinfo, now: datetime) -> Filter | None:
    """Parse a filter; None if it is empty. Raises BadQuestion with the position of the error."""
    tokens = tokens_of(text)
    if len(tokens) == 1:
        return None
    parser = _Parser(tokens, zone, now)
    node = parser.whole()
    depth, conditions = _measured(node.tree)
    if depth > MAX_DEPTH or conditions > MAX_CONDITIONS:
        raise BadQuestion(
            f"the filter has {conditions} conditions in {depth} levels; {MAX_CONDITIONS} in"
            f" {MAX_DEPTH} fit",
            "look for less at a time; a word without a field counts three times",
        )
    return Filter(
        text=node.text,
        absolute=_absolute(text, parser.times),
        tree=node.tree,
        since_ms=_since(node.tree),
    )


class _Parser:
    def __init__(self, tokens: list[Token], zone: tzinfo, now: datetime) -> None:
        self._tokens = tokens
        self._zone = zone
        self._now = now
        self._place = 0
        # Times, each with the text that means it in every zone.
        self.times: list[tuple[Token, str]] = []

    # -- tokens ----------------------------------------------------------------------------------

    @property
    def _here(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._here
        if token.kind is not Kind.END:
            self._place += 1
        return token

    def _is_word(self, *words: str) -> bool:
        return self._here.kind is Kind.WORD and self._here.text.lower() in words

    # -- structure -------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self._any(1)
        if self._here.kind is not Kind.END:
            raise _wrong(self._here, "is not expected here", "take it away, or put `or` before it")
        return node

    def _any(self, depth: int) -> Node:
        parts = [self._all(depth)]
        while self._is_word("or"):
            self._take()
            parts.append(self._all(depth))
        return _joined("any", " or ", parts)

    def _all(self, depth: int) -> Node:
        parts = [self._one(depth)]
        while True:
            if self._is_word("and"):
                self._take()
            elif self._here.kind in {Kind.END, Kind.CLOSE} or self._is_word("or"):
                return _joined("all", " and ", parts)
            parts.append(self._one(depth))

    def _one(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise _wrong(self._here, f"is deeper than {MAX_DEPTH} levels", "use fewer parentheses")
        if self._is_word("not"):
            self._take()
            inner = self._one(depth + 1)
            return Node({"not": inner.tree}, f"not {inner.text}")
        if self._here.kind is Kind.OPEN:
            opened = self._take()
            inner = self._any(depth + 1)
            if self._take().kind is not Kind.CLOSE:
                raise _wrong(opened, "is not closed", "put a ) where it ends")
            return Node(inner.tree, f"({inner.text})")
        return self._condition()

    # -- conditions ------------------------------------------------------------------------------

    def _condition(self) -> Node:
        token = self._take()
        if token.kind is Kind.STRING:
            return _anywhere(token)
        if token.kind is not Kind.WORD or token.text.lower() in {"and", "or"}:
            raise _wrong(token, "is not expected here", f"write a condition, as {EXAMPLE}")
        head = re.split(r"[.\[]", token.text, maxsplit=1)[0].lower()
        if head in SIDES:
            return self._side(token, head)
        if head in {"partition", "timestamp", "header"}:
            return self._named(token, head)
        if self._here.kind is Kind.SIGN or self._is_word(*CONTAINS, "exists"):
            raise _wrong(
                token,
                "is nothing that can be compared",
                f"write key, value, value.{token.text[:40]}, header NAME, partition or timestamp",
            )
        return _anywhere(token)

    def _named(self, token: Token, head: str) -> Node:
        if head == "header":
            return self._header(token)
        if len(token.text) > len(head):
            raise _wrong(token, f"is more than {head}, which has no parts", f"write {head} alone")
        sign = self._sign(token)
        told = self._take()
        if head == "partition":
            if not NUMBER.fullmatch(told.text):
                raise _wrong(told, "is not a partition", "give its number, as partition = 3")
            tree = {"partition": {"op": SIGNS[sign], "value": int(told.text)}}
            return Node(tree, f"partition {sign} {int(told.text)}")
        if told.kind is Kind.END:
            raise _wrong(told, "is not a time", "give a date, as timestamp >= 2026-01-31T12:00:00")
        try:
            time_ms = time_of(told.text, zone=self._zone, now=self._now)
        except BadQuestion as bad:
            raise BadQuestion(bad.message, bad.next_step, position=told.position) from None
        self.times.append((told, moments.absolute(told.text, zone=self._zone, now=self._now)))
        tree = {"timestamp": {"op": SIGNS[sign], "value": time_ms}}
        return Node(tree, f"timestamp {sign} {_moment(time_ms, self._zone)}")

    def _header(self, token: Token) -> Node:
        name = self._header_name(token)
        shown = f"header {_quoted(name)}"
        if self._is_word("exists"):
            self._take()
            return Node({"header": {"name": name}}, f"{shown} exists")
        sign = self._here
        if self._sign(token) not in {"=", "==", "!="}:
            raise _wrong(sign, "does not fit a header", "compare it by = or !=, or use exists")
        text = self._text()
        tree: Tree = {"header": {"name": name, "text": text}}
        if sign.text == "!=":
            return Node({"not": tree}, f"{shown} != {_quoted(text)}")
        return Node(tree, f"{shown} = {_quoted(text)}")

    def _header_name(self, token: Token) -> str:
        rest = token.text[len("header") :]
        if rest.startswith("."):
            return rest[1:]
        named = token if rest else self._take()
        if rest or named.kind not in {Kind.WORD, Kind.STRING}:
            raise _wrong(named, "is not a header name", 'write header trace = "x"')
        return named.text

    def _side(self, token: Token, side: str) -> Node:
        path = _path(token, len(side))
        if self._is_word(*CONTAINS):
            word = self._take().text.lower()
            text = self._text()
            return Node(
                _contains(side, path, text, ignores_case=CONTAINS[word]),
                f"{token.text} {word} {_quoted(text)}",
            )
        if self._is_word("exists"):
            self._take()
            tree = (
                {"json": {"in": side, "path": path, "op": "exists"}}
                if path
                else {"not": {side: None}}
            )
            return Node(tree, f"{token.text} exists")
        sign = self._sign(token)
        told = self._take()
        return _compared(token, side, path, sign, told)

    def _sign(self, token: Token) -> str:
        if self._here.kind is not Kind.SIGN:
            raise _wrong(
                self._here,
                f"cannot compare {token.text[:40]}",
                "use = != < <= > >=, contains, icontains or exists",
            )
        return self._take().text

    def _text(self) -> str:
        told = self._take()
        if told.kind not in {Kind.WORD, Kind.STRING} or not told.text:
            raise _wrong(told, "is not a text to search for", 'write it in quotes, as "refused"')
        return _checked(told)


# -- trees ---------------------------------------------------------------------------------------


def _joined(kind: str, word: str, parts: list[Node]) -> Node:
    if len(parts) == 1:
        return parts[0]
    return Node({kind: [part.tree for part in parts]}, word.join(part.text for part in parts))


def _anywhere(token: Token) -> Node:
    if not token.text:
        raise _wrong(token, "is empty", "write what to look for between the quotes")
    text = _checked(token)
    tree = {"any": [{"contains": {"in": side, "text": text}} for side in SIDES]}
    return Node(tree, f"(key contains {_quoted(text)} or value contains {_quoted(text)})")


def _contains(side: str, path: list[str | int], text: str, *, ignores_case: bool) -> Tree:
    if path:
        op = "icontains" if ignores_case else "contains"
        return {"json": {"in": side, "path": path, "op": op, "value": text}}
    told: dict[str, Any] = {"in": side, "text": text}
    return {"contains": {**told, "ignore_case": True} if ignores_case else told}


def _compared(token: Token, side: str, path: list[str | int], sign: str, told: Token) -> Node:
    op, value = SIGNS[sign], _literal(told)
    text = f"{token.text} {sign} {_shown(value)}"
    is_whole = not path and (value is None or isinstance(value, str))
    if is_whole or (side == "key" and not path and op in {"==", "!="}):
        if op not in {"==", "!="}:
            raise _wrong(
                told, "is not a number", f"compare a part of it, as {side}.price > 100, or use ="
            )
        # A number may be the text of a key.
        tree: Tree = {side: None if value is None else {"text": _checked(told)}}
        return Node(tree if op == "==" else {"not": tree}, text)
    if op in {"<", "<=", ">", ">="} and (value is None or isinstance(value, bool)):
        raise _wrong(told, "has no order", "compare it by = or !=")
    tree = {"json": {"in": side, "path": path, "op": op, "value": value}}
    return Node(tree, text)


def _path(token: Token, start: int) -> list[str | int]:
    path: list[str | int] = []
    position = start
    while position < len(token.text):
        step = STEP.match(token.text, position)
        if step is None or len(path) == MAX_STEPS:
            raise BadQuestion(
                f"{token.text[:60]!r} is not a path from character {position + 1} on",
                'write value.order.items[0].sku, or value["strange name"]; '
                f"{MAX_STEPS} steps at most",
                position=token.position + position,
            )
        if step["index"] is not None:
            path.append(int(step["index"]))
        else:
            path.append(step["name"] or unquoted(step["quoted"], token.position + position))
        position = step.end()
    return path


def _literal(token: Token) -> str | float | bool | None:
    if token.kind is Kind.STRING:
        return _checked(token)
    if token.kind is not Kind.WORD:
        raise _wrong(
            token, "is nothing to compare with", 'give a number, or a text in quotes, as "refused"'
        )
    if token.text.lower() in CONSTANTS:
        constant: bool | None = CONSTANTS[token.text.lower()]
        return constant
    if len(token.text) <= MAX_DIGITS and INTEGER.fullmatch(token.text):
        return int(token.text)
    if len(token.text) <= MAX_DIGITS and FRACTION.fullmatch(token.text):
        number = float(token.text)
        if number in {float("inf"), float("-inf")}:
            raise _wrong(token, "is beyond all numbers", "give a smaller one")
        return number
    return _checked(token)


def _checked(token: Token) -> str:
    size = len(token.text.encode())
    if size > MAX_NEEDLE:
        raise _wrong(token, f"has {size} bytes; at most {MAX_NEEDLE} fit", "look for a part of it")
    return token.text


def _absolute(text: str, times: list[tuple[Token, str]]) -> str:
    for token, instant in reversed(times):
        text = text[: token.position] + instant + text[token.end :]
    return text


def _folded(tree: Tree, partition: int) -> Tree:
    """Decide conditions about the partition, and simplify accordingly."""
    [(kind, told)] = tree.items()
    if kind == "partition":
        return _holds(partition, told["op"], told["value"])
    if kind == "not":
        inner = _folded(told, partition)
        return (not inner) if isinstance(inner, bool) else {"not": inner}
    if kind not in {"all", "any"}:
        return tree
    parts = [_folded(part, partition) for part in told]
    decides = kind == "any"
    if any(part is decides for part in parts):
        return decides
    open_parts = [part for part in parts if not isinstance(part, bool)]
    if not open_parts:
        return not decides
    return open_parts[0] if len(open_parts) == 1 else {kind: open_parts}


def _measured(tree: Tree) -> tuple[int, int]:
    """Return the number of levels and conditions of a tree."""
    [(kind, told)] = tree.items()
    parts = [told] if kind == "not" else told if kind in {"all", "any"} else []
    measured = [_measured(part) for part in parts]
    depth = 1 + max((levels for levels, _ in measured), default=0)
    return depth, 1 + sum(number for _, number in measured)


def _holds(partition: int, op: str, value: int) -> bool:
    return {
        "==": partition == value,
        "!=": partition != value,
        "<": partition < value,
        "<=": partition <= value,
        ">": partition > value,
        ">=": partition >= value,
    }[op]


def _since(tree: Tree) -> int | None:
    """Return the time before which nothing can match."""
    [(kind, told)] = tree.items()
    if kind == "timestamp" and told["op"] in {"==", ">", ">="}:
        return min(int(told["value"]), MAX_INT64)
    if kind == "all":
        return max((at for at in map(_since, told) if at is not None), default=None)
    return None


# -- words ---------------------------------------------------------------------------------------


def _wrong(token: Token, what: str, next_step: str) -> BadQuestion:
    place = "" if token.kind is Kind.END else f" at character {token.position + 1}"
    return BadQuestion(f"{token.shown}{place} {what}", next_step, position=token.position)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _shown(value: str | float | bool | None) -> str:
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _moment(time_ms: int, zone: tzinfo) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, tz=zone).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
