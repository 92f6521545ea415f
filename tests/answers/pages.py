"""What the console answers: every address for each kind of user, and changes made by forms.

Of a page, its status, title and headline; of a form, the names of its fields and where it leads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode, urljoin, urlsplit

from tests.answers.asking import Answer, Ask, Door, head
from tests.answers.home import GROUP, AnswersHome, cookie_header, cookies_of
from tests.answers.html import Form, Page
from tests.answers.masking import Masks

NONE: Final = "none-such"
ADDRESSES: Final = (
    *("/", "/topics", "/topics?q=ord", "/topics/+new", "/topics/orders", f"/topics/{NONE}"),
    *("/topics/orders?tab=partitions", "/topics/orders?tab=configs", "/topics/orders?tab=x"),
    *("/topics/orders/edit", "/topics/orders/partitions", "/topics/orders/delete"),
    *("/topics/orders/messages", "/topics/orders/produce", f"/topics/{NONE}/edit"),
    *("/groups", f"/groups/{GROUP}", f"/group?name={GROUP}", f"/group?name={NONE}", "/group"),
    *(f"/group/reset?name={GROUP}", f"/group/offsets/delete?name={GROUP}"),
    *(f"/group/delete?name={GROUP}", "/group/plans/show", "/group/plans/apply"),
    *("/connectors", "/connectors/+new", f"/connectors/+new/{NONE}", f"/connectors/{NONE}"),
    "/connectors/+new/org.apache.kafka.connect.file.FileStreamSinkConnector",
    *(
        f"/connectors/{NONE}/{page}"
        for page in (
            "edit",
            "offsets",
            "delete",
            "dead-letters",
            "dead-letters/plan",
            "dead-letters/start",
            "redrives",
            "redrives/1/stop",
            "redrives/1/resume",
            "tasks/0/restart",
            "order/pause",
        )
    ),
    *("/spark", "/extras", "/extras/parquet/install", "/brokers", "/brokers/1", "/brokers/9"),
    *(
        f"/brokers/1/{page}"
        for page in (
            "configs",
            "order",
            "start",
            "stop",
            "restart",
            "log",
            "log/1",
        )
    ),
    *("/brokers/1?tab=configs", "/brokers/1?tab=log", "/api", "/changes", "/changes?q=x"),
    *("/changes/1", "/changes/999999", "/changes.csv", "/changes.ndjson", "/plans/apply"),
    *("/plans/preview", "/users", "/users/new", "/users/2", "/users/999", "/users/2/grants"),
    *("/users/2/grants/1/remove", "/users/2/block", "/tokens", "/tokens/new"),
    *("/tokens/1/revoke", "/tokens/999/revoke", "/traffic", "/account", "/account/session"),
    *("/account/sessions/end", "/password", "/search", "/search?q=ord", "/series"),
    *("/series?name=none", "/preferences", "/login", "/login?next=/topics", "/logout"),
    *(f"/{NONE}", "/static/none.css", "/static/console/look.css", "/favicon.ico", "/health"),
    *("/events", "/events?topic=cluster:{c}", "/messages/stream", "/messages/export"),
    *("/messages/record", "/topics/", "/admin"),
)
USERS: Final = ("nobody", "nora", "otto", "vera")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Send the form of a page that leads to an address, with some fields filled in."""

    to: str
    fields: Mapping[str, str] = field(default_factory=dict)


# Each opens an address as vera, and sends the forms of the pages that follow.
FLOWS: Final[Mapping[str, tuple[str, Sequence[Submit]]]] = {
    "a new topic": (
        "/topics/+new",
        (Submit(to="/topics/+new", fields={"name": "made", "partitions": "2"}), Submit(to="apply")),
    ),
    "a new topic that is refused": (
        "/topics/+new",
        (Submit(to="/topics/+new", fields={"name": "a b", "partitions": "2"}),),
    ),
    "configs of a topic": (
        "/topics/made/edit",
        (Submit(to="/edit", fields={"new_key": "retention.ms", "new_value": "5000"}),),
    ),
    "more partitions": (
        "/topics/made/partitions",
        (Submit(to="/partitions", fields={"count": "3"}), Submit(to="apply")),
    ),
    "fewer partitions": (
        "/topics/made/partitions",
        (Submit(to="/partitions", fields={"count": "1"}),),
    ),
    "a record": (
        "/topics/made/produce",
        (Submit(to="/produce", fields={"value": "v", "partition": "0"}),),
    ),
    "a topic deleted": (
        "/topics/made/delete",
        (Submit(to="/delete", fields={"typed": "made"}), Submit(to="apply")),
    ),
    "a topic deleted under another name": (
        "/topics/orders/delete",
        (Submit(to="/delete", fields={"typed": "made"}),),
    ),
    "offsets reset": (
        f"/group/reset?name={GROUP}",
        (Submit(to="reset", fields={"mode": "earliest"}), Submit(to="apply")),
    ),
    "offsets deleted": (
        f"/group/offsets/delete?name={GROUP}",
        (Submit(to="offsets/delete", fields={"topic": "orders"}), Submit(to="apply")),
    ),
    "a group deleted": (
        f"/group/delete?name={GROUP}",
        (Submit(to="apply", fields={"name": GROUP, "typed": GROUP}),),
    ),
    "a config of a broker": (
        "/brokers/1?tab=configs",
        (Submit(to="/configs", fields={"key": "log.retention.ms", "value": "5"}),),
    ),
    "a token": (
        "/tokens/new",
        (Submit(to="/tokens/new", fields={"name": "made", "read": "orders"}),),
    ),
    "a token revoked": (
        "/tokens/4/revoke",
        (Submit(to="/revoke", fields={}),),
    ),
    "a user": (
        "/users/new",
        (Submit(to="/users/new", fields={"name": "ida", "role": "viewer"}),),
    ),
    "logout": ("/", (Submit(to="/logout"),)),
}


def record(home: AnswersHome) -> Iterator[str]:
    masks = home.masks()
    cookies = {name: home.signed_in(name) for name in USERS if name != "nobody"}
    secrets = {value for each in cookies.values() for value in each.values()}
    assert all(secrets)
    callers = {name: cookie_header(each) for name, each in cookies.items()}
    door = home.door(home.web, **callers)
    yield from ("## every address", "")
    for address in ADDRESSES:
        path = address.replace("{c}", home.cluster_id)
        yield masks.text(path)
        lines: dict[str, list[str]] = {}
        for by in USERS:
            # Streams of events have no end: `streams` reads their beginning.
            if not (path.startswith("/events?") and by in ("otto", "vera")):
                line = line_of(door.ask(Ask(method="GET", path=path, by=by)))
                lines.setdefault(line, []).append(by)
        yield from (masks.text(f"    {', '.join(names)}: {line}") for line, names in lines.items())
    yield from ("", "## other methods", "")
    for path in ("/topics", "/topics/+new", "/login", "/events", "/messages/stream", "/search"):
        for method in ("HEAD", "OPTIONS", "POST", "PUT", "DELETE"):
            for by in ("nobody", "vera"):
                answer = door.ask(Ask(method=method, path=path, by=by))
                yield masks.text(f"{by}: {method} {path} {line_of(answer)}")
    yield from ("", "## forms", "")
    yield from refused_logins(door, masks)
    for title, (path, steps) in FLOWS.items():
        yield from flow(door, title, path, steps, masks)


def line_of(answer: Answer) -> str:
    page = Page(answer.body.decode("utf-8", "replace"))
    is_page = "html" in answer.header("content-type")
    shown = head(answer).replace("text/html; charset=utf-8; same-origin opener", "page")
    headline = f" headline {page.headline!r}" * (page.headline not in page.title)
    return f"{shown}; {page.title!r}{headline}" if is_page and page.title else shown


def refused_logins(door: Door, masks: Masks) -> Iterator[str]:
    for fields in ({"username": "vera", "password": "wrong"}, {"username": "none"}):
        page = door.ask(Ask(method="GET", path="/login", by="nobody"))
        made = cookies_of(page)
        token = next(value for name, value in made.items() if "csrf" in name)
        for csrf in (token, "none"):
            ask = sent("/login", {**fields, "csrfmiddlewaretoken": csrf}, cookie_header(made))
            how = "" if csrf == token else "without its token "
            yield masks.text(f"login {fields} {how}{line_of(door.ask(ask))}")


def sent(
    path: str, fields: Mapping[str, str] | Sequence[tuple[str, str]], headers: Mapping[str, str]
) -> Ask:
    pairs = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
    typed = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(pairs).encode()
    return Ask(method="POST", path=path, body=body, by="nobody", headers={**headers, **typed})


def flow(door: Door, title: str, path: str, steps: Sequence[Submit], masks: Masks) -> Iterator[str]:
    """Send one form after the other; a flow that finds no form ends there."""
    yield f"### {title}"
    answer = door.ask(Ask(method="GET", path=path, by="vera"))
    yield masks.text(f"GET {path} {line_of(answer)}")
    for step in steps:
        forms = Page(answer.body.decode("utf-8", "replace")).forms
        found = next((form for form in forms if leads_to(form, path, step.to)), None)
        if found is None:
            yield masks.text(f"    no form to {step.to}: {[form.action for form in forms]}")
            break
        target = urljoin(path, found.action) if found.action else path
        fields = filled(found, step.fields)
        names = ", ".join(dict.fromkeys(name for name, _ in found.fields))
        yield masks.text(f"    {found.method.upper()} {urlsplit(target).path} of {names}")
        yield f"        filled in: {dict(step.fields)}"
        if found.method == "get":
            query = f"{urlsplit(target).path}?{urlencode(fields)}"
            answer = door.ask(Ask(method="GET", path=query, by="vera"))
        else:
            headers = {"Cookie": door.header_of("vera", "Cookie")}
            answer = door.ask(sent(target, fields, headers))
        path = target
        yield masks.text(f"        {line_of(answer)}")
    yield ""


def leads_to(form: Form, path: str, word: str) -> bool:
    address = urlsplit(form.action or path).path
    return address.endswith(word)


def filled(form: Form, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    kept = [(name, value) for name, value in form.fields if name not in fields]
    return [*kept, *fields.items()]
