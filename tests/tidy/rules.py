"""The house rules that a syntax tree can show, each as a function from a source to complaints."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.project import Source, is_within

# A name that says nothing about what it names.
EMPTY_WORDS = {"util", "utils", "common", "helper", "helpers", "base", "manager", "misc", "stuff"}
# Where Django looks for a database backend.
NAMED_BY_DJANGO = {Path("gateway/sqlite/base.py"), Path("tests/gateway/sqlite/test_base.py")}
EMPTY_VERBS = ("do_", "process_", "handle_all")

# Only these may know what time it is, and what the environment says, in the broker.
CLOCK = "brokers.clock"
CONFIG = "brokers.config"
# Whoever holds one of these under any name can read the time, so none is imported at all; what is
# left of datetime (timedelta, UTC) cannot.
TELL_TIME = ("time", "datetime.datetime", "datetime.date", "django.utils.timezone")

# A comment that is more than a word to the linter.
REASON = re.compile(r"#(?! noqa(: \w+)?$)")

# Built from parts, because this file is read by the rule too.
LEFTOVER = re.compile(rf"\b({'TODO'}|{'FIXME'}|{'XXX'}|{'HACK'})\b(?:\((?P<topic>[^)]+)\))?")


def unnamed(source: Source) -> Iterator[str]:
    """Names of modules, classes and functions that carry no meaning."""
    for part in () if source.path in NAMED_BY_DJANGO else source.path.with_suffix("").parts:
        if EMPTY_WORDS & set(part.split("_")):
            yield f"{source.path}: the name says nothing"
    for node in source.nodes():
        if isinstance(node, ast.ClassDef):
            words = re.findall(r"[A-Z][a-z]+", node.name)
            if EMPTY_WORDS & {word.lower() for word in words}:
                yield f"{source.path}:{node.lineno} {node.name}: the name says nothing"
    for function in source.functions():
        if function.name.lstrip("_").startswith(EMPTY_VERBS):
            yield f"{source.path}:{function.lineno} {function.name}: the verb says nothing"


def foreign_time(source: Source) -> Iterator[str]:
    """Means of reading time in the broker that are not the clock's."""
    if source.top != "brokers" or source.dotted == CLOCK:
        return
    for line, name in source.imports():
        if name == "datetime" or any(is_within(name, clock) for clock in TELL_TIME):
            yield f"{source.path}:{line}: time is read through {CLOCK} only"


def foreign_environment(source: Source) -> Iterator[str]:
    """Reads of environment variables in the broker outside its configuration."""
    if source.top != "brokers" or source.dotted == CONFIG:
        return
    for node in source.nodes():
        named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
        if named in {"environ", "getenv", "environb"}:
            line = getattr(node, "lineno", 0)
            yield f"{source.path}:{line}: the environment is read by {CONFIG} only"


def sleeps(source: Source) -> Iterator[str]:
    """Sleeps in tests: a test waits for a fact or moves a clock, it does not wait for time."""
    if source.top != "tests":
        return
    for function, call in source.calls():
        if function in {"time.sleep", "asyncio.sleep"}:
            is_yield = [ast.unparse(argument) for argument in call.args] == ["0"]
            if not is_yield:
                yield f"{source.path}:{call.lineno}: a test must not sleep"


def broad_excepts(source: Source) -> Iterator[str]:
    """Handlers of everything that do not say why, on their line or next to it."""
    lines = source.text.splitlines()
    for node in source.nodes():
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}:
            near = lines[max(0, node.lineno - 2) : node.lineno + 1]
            if not any(REASON.search(line) for line in near):
                yield f"{source.path}:{node.lineno}: a broad except needs its reason beside it"


def leftovers(source: Source, gaps: str) -> Iterator[str]:
    """Markers of unfinished work without a line in docs/gaps.md on the same topic."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and (found := LEFTOVER.search(token.string)):
            topic = found["topic"]
            if topic is None or topic not in gaps:
                yield f"{source.path}:{token.start[0]}: unfinished, and not in docs/gaps.md"
