"""Finds the words of users' texts that plain technical English avoids, and says what to write.

Users read string literals outside of docstrings, the docstrings of commands (their help),
templates, the strings of scripts, and the how-tos.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.tidy.project import PRODUCT, Source

# A word that is not plain: what to write instead.
DIALECT: Final[Mapping[str, str]] = {
    r"nobody": "no user, no client, no member",
    r"somebody": "a user, a client, an administrator",
    r"whoever": "the client that, users who",
    r"anew": "again, or the noun with new",
    r"tells?|told": "shows, reports, sends; says only of a text",
    r"stands?|stood": "is, appears; means",
    r"lies|(?:may|must|can|to) lie": "is, must be",
    r"to be had": "available",
    r"there (?:is|are|was|were) (?-i:none)": "the noun: no broker has one, it does not exist",
    r"(?:is|are|was|were) (?-i:none) of": "is not one of",
    r"(?:is|are|was|were) (?-i:none)(?=$|[.,:;)])": "the noun: does not exist, is not a number",
    r"(?<!there )(?:is|are) no(?= )(?! (?:longer|limit|more|less|need)\b)": "is not a, is not",
    r"go(?:es|ing)? on|went on": "continues, keeps, resumes",
    r"for ?ever": "without end, permanently",
    r"in vain": "without effect; failed",
    r"(?:in )?so far as": "as far as; only if",
    r"any ?more": "no longer",
    r"as people": "as, with the name of who",
    r"g(?:ive|ives|ave) way": "is closed, is replaced",
}
# A clause in the place of a subject: "What is written just now is not known". A heading is shorter,
# and a question ends in its mark.
CLAUSE: Final = (
    r"(?:^|(?<=[.!] )|\|)\s*((?:who|what|whose|which \w+ there)(?: [^\s.?|]+){4,}(?![^.]*\?))"
)
SUBJECT: Final = "a noun as the subject: Current traffic is unknown"

_WORDS: Final = re.compile(
    "|".join((*(rf"\b({word})\b" for word in DIALECT), CLAUSE)), re.IGNORECASE | re.MULTILINE
)
_BETTER: Final = (*DIALECT.values(), SUBJECT)

# Texts of others that users look up as they are: the file, and the words of the text.
QUOTED: Final[Mapping[str, tuple[str, ...]]] = {
    # A label of a metric, which alerts name.
    "brokers/server/frame_room.py": ("gave way",),
}

# Functions with these decorators show their docstring as help.
_COMMANDS: Final = {"command", "group", "verb"}
_SCRIPT_STRING: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"((?:\\.|[^"\\\n])*)"|'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`""",
    re.DOTALL,
)
_TEMPLATE_CODE: Final = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}", re.DOTALL)
_TEMPLATE_STRING: Final = re.compile(r'"([^"]*)"')
_TAG: Final = re.compile(r"<script\b.*?</script>|<[^>]*>", re.DOTALL)
_SHOWN_ATTRIBUTE: Final = re.compile(
    r'\b(?:title|placeholder|alt|label|aria-label|aria-description|data-confirm)="([^"]*)"'
)
_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def dialect(source: Source) -> Iterator[str]:
    """Yield the words of a product file that users should not read."""
    if source.top in PRODUCT:
        for line, text in strings(source):
            yield from complaints(source.path, line, text)


def dialect_of_page(path: Path, text: str) -> Iterator[str]:
    """Yield those of a template, a script or a Markdown page."""
    shown = {".html": _template_texts, ".js": _script_texts, ".md": _page_texts}[path.suffix]
    for line, words in shown(text):
        yield from complaints(path, line, words)


def complaints(path: Path, line: int, text: str) -> Iterator[str]:
    for words in QUOTED.get(str(path), ()):
        text = text.replace(words, "")
    for found in _WORDS.finditer(text):
        assert found.lastindex is not None, "each alternative is a group"
        better = _BETTER[found.lastindex - 1]
        at = line + text.count("\n", 0, found.start(found.lastindex))
        yield f"{path}:{at}: “{found[found.lastindex]}” is not plain English; write {better}"


def strings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file with their lines; a value in an f-string is “…”."""
    parts: set[int] = set()
    for node in source.nodes():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
        elif isinstance(node, ast.FunctionDef) and any(map(_is_command, node.decorator_list)):
            yield node.lineno, ast.get_docstring(node) or ""
    for node in source.nodes():
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(_written(value) for value in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in parts and _is_text(node.value):
            yield node.lineno, str(node.value)


def _is_command(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _COMMANDS


def _is_text(value: object) -> bool:
    # A single word is a name or a key.
    return isinstance(value, str) and " " in value.strip()


def _written(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "…"


def _script_texts(text: str) -> Iterator[tuple[int, str]]:
    for found in _SCRIPT_STRING.finditer(text):
        words = next(filter(None, found.groups()), "")
        if " " in words.strip():
            yield text.count("\n", 0, found.start()) + 1, re.sub(r"\$\{[^}]*\}", "…", words)


def _template_texts(text: str) -> Iterator[tuple[int, str]]:
    # Blanks in the place of code keep the positions of words.
    plain = _TEMPLATE_CODE.sub(lambda code: _kept(_TEMPLATE_STRING, code[0], end=" "), text)
    yield 1, _TAG.sub(lambda tag: _kept(_SHOWN_ATTRIBUTE, tag[0]), plain)


def _page_texts(text: str) -> Iterator[tuple[int, str]]:
    # A cell of a table is a part of a sentence.
    plain = text.replace("|", "\N{BROKEN BAR}")
    yield 1, _CODE.sub(lambda code: re.sub(r"[^\n]", "\N{MIDDLE DOT}", code[0]), plain)


def _kept(pattern: re.Pattern[str], text: str, *, end: str = "|") -> str:
    """Blank a text but for the first group of what the pattern finds."""
    kept = list(re.sub(r"[^\n]", " ", text))
    kept[0] = kept[-1] = end
    for found in pattern.finditer(text):
        start, stop = found.span(1)
        kept[start - 1 : stop + 1] = "|", *found[1], "|"
    return "".join(kept)
