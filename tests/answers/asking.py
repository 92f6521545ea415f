"""Asks over HTTP exactly what a table says, and writes answers as lines."""

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tests.answers.masking import Masks, documents

# What any answer may take on a machine that is busy with other tests.
PATIENCE_S: Final = 60
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Written only where an answer differs: every answer is expected to have them.
USUAL: Final = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
OPENER: Final = "cross-origin-opener-policy"
# Of the server, or of the length of a text that is masked.
SKIPPED: Final = frozenset({"date", "server", "content-length"})
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# Callers of a sweep, with their methods.
CALLERS: Final = {"nobody": METHODS, "reader": ("GET", "POST"), "admin": METHODS}
FEWER: Final = {"nobody": ("GET",), "admin": METHODS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. `by` is the name of its caller; a body that is not bytes is sent as JSON."""

    method: str
    path: str
    body: Any = None
    by: str = "admin"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key == name)


def values(*each: Any) -> Sequence[Any]:
    """Return bodies of any kinds."""
    return each


class Door:
    """One server, asked over a connection that stays open."""

    def __init__(self, address: str, credentials: Mapping[str, Mapping[str, str]]) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_S)
        self._credentials = credentials

    def close(self) -> None:
        self._connection.close()

    def header_of(self, by: str, name: str) -> str:
        return self._credentials[by][name]

    def ask(self, ask: Ask) -> Answer:
        body, headers = ask.body, {**self._credentials[ask.by], **ask.headers}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        headers = {name: value for name, value in headers.items() if value}
        if "Content-Length" in headers:
            # Announced only: the answer is expected before the body.
            return self._announce(ask, headers)
        self._connection.request(ask.method, ask.path, body, headers)
        return self._answer()

    def _announce(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        self._connection.putrequest(ask.method, ask.path)
        for name, value in headers.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()
        answer = self._answer()
        self._connection.close()
        return answer

    def _answer(self) -> Answer:
        found = self._connection.getresponse()
        headers = [(name.lower(), value) for name, value in found.getheaders()]
        return Answer(status=found.status, headers=headers, body=found.read())


def block(ask: Ask, answer: Answer, masks: Masks) -> Iterator[str]:
    """Write a request and its answer."""
    said = "" if ask.body is None else f" {shown(ask.body)}"
    extra = "".join(f" {name}={value!r}" for name, value in ask.headers.items())
    yield masks.text(f"{ask.by}: {ask.method} {ask.path}{said}{extra}")
    yield "    " + masks.text(head(answer))
    yield from ("    " + line for line in masks.body(answer.body, answer.header("content-type")))
    yield ""


def head(answer: Answer) -> str:
    words = [str(answer.status), answer.header("content-type") or "-"]
    given = dict(answer.headers)
    words += [f"{name}: {given.get(name)}" for name in USUAL if given.get(name) != USUAL[name]]
    # All that Django answers has it, and nothing else has.
    words += ["same-origin opener"] * (given.get(OPENER) == "same-origin")
    words += [
        f"{name}: {cookie(value) if name == 'set-cookie' else value}"
        for name, value in sorted(answer.headers)
        if name not in SKIPPED and name not in USUAL and name not in (OPENER, "content-type")
    ]
    return "; ".join(words)


def cookie(text: str) -> str:
    """Return a cookie without its value and its time."""
    first, *rest = text.split("; ")
    kept = [part for part in rest if not part.lower().startswith("expires=")]
    return " ".join([first.partition("=")[0], *kept])


def shown(body: Any) -> str:
    if isinstance(body, bytes):
        return repr(body if len(body) < 200 else body[:40] + b"...")[1:]
    return json.dumps(body, ensure_ascii=False)


def sweep(
    door: Door, paths: Sequence[str], callers: Mapping[str, Sequence[str]], masks: Masks
) -> Iterator[str]:
    """Ask every path without a body, as each caller by its methods; write only how it is answered.

    Callers and methods that are answered alike share a line.
    """
    for path in paths:
        yield masks.text(path)
        lines: dict[str, list[str]] = {}
        for by, methods in callers.items():
            answers = {method: door.ask(Ask(method=method, path=path, by=by)) for method in methods}
            outcomes: dict[str, list[str]] = {}
            for method, answer in answers.items():
                # Without a body it has no code; all else is as of GET.
                code = "" if method != "HEAD" or "GET" not in answers else code_of(answers["GET"])
                outcomes.setdefault(outcome(answer, code), []).append(method)
            found = " | ".join(f"{','.join(names)} {end}" for end, names in outcomes.items())
            lines.setdefault(found, []).append(by)
        yield from (masks.text(f"    {', '.join(names)}: {line}") for line, names in lines.items())


def outcome(answer: Answer, code: str) -> str:
    """Return the status, the error code and the headers that say what else is served."""
    words = [str(answer.status), code or code_of(answer)]
    kind = answer.header("content-type")
    if kind != "application/json":
        words.append(kind or "-")
    named = ("allow", "www-authenticate", "location", "upgrade", "retry-after")
    words += [f"{name}: {answer.header(name)}" for name in named if answer.header(name)]
    return " ".join(filter(None, words))


def code_of(answer: Answer) -> str:
    is_json = "json" in answer.header("content-type")
    found = documents(answer.body.decode("utf-8", "replace")) if is_json else None
    has_code = found and isinstance(found[0], dict) and "error_code" in found[0]
    return f"code={found[0]['error_code']}" if found and has_code else ""
