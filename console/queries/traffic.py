"""Reads the HTTP and WebSocket traffic of programs in the last minutes, by token and user."""

from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from console.queries.sparks import spark
from gateway.access import token_selectors
from gateway.access.grants import Rights
from gateway.access.operations import Operation
from gateway.rest.home_traffic import CallerTraffic, HomeTraffic, NoTraffic, Source, Workers
from gateway.rest.traffic import OTHERS, STEP_S, STEPS, STRANGERS

# The rows of a page, the busiest first; the others are counted.
MAX_ROWS: Final = 100
MINUTES: Final = STEP_S * STEPS // 60
KINDS: Final = {
    "token": "token",
    "user": "user, by password",
    "session": "user, in the console",
    "host": "owner of the home, on its machine",
}
# Rows that stand for no single caller: their name and their meaning.
SPECIAL: Final = {
    OTHERS: ("all others", "beyond the callers that a worker counts"),
    STRANGERS: ("not let in", "without valid credentials, or beyond a limit"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The user of the page and their rights."""

    user_id: int
    user_name: str
    rights: Rights

    @property
    def sees_all(self) -> bool:
        """Tell whether the user may see the traffic of others."""
        return any(
            self.rights.allows_somewhere(operation)
            for operation in (Operation.VIEW_AUDIT, Operation.MANAGE_TOKENS)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRow:
    name: str
    kind: str
    requests: int
    records: int
    errors: int
    bytes_in: int
    bytes_out: int
    open: int
    picture: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    frame: Frame
    sees_all: bool = False
    rows: tuple[TrafficRow, ...] = ()
    more: int = 0
    total: TrafficRow | None = None
    workers: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    # Why no worker could be asked; empty if one answered.
    failure: str = ""
    minutes: int = MINUTES


class _Source:
    current: Source = Workers()


def use(source: Source | None) -> None:
    """Replace the source of traffic, for tests; None restores the workers of this home."""
    _Source.current = source or Workers()


def traffic(cluster_id: str | None, asking: Asking) -> Reading[Traffic]:
    return last_good.read(
        ("traffic", cluster_id, asking.user_id, asking.rights.grants),
        lambda: _traffic(cluster_id, asking),
        is_empty=lambda data: not data.rows,
    )


def _traffic(cluster_id: str | None, asking: Asking) -> Traffic:
    around = frame(cluster_id, asking.rights)
    try:
        told = _Source.current.read()
    except NoTraffic as error:
        return Traffic(frame=around, sees_all=asking.sees_all, failure=str(error))
    seen = _seen(told, asking)
    return Traffic(
        frame=around,
        sees_all=asking.sees_all,
        rows=tuple(_row(one) for one in seen[:MAX_ROWS]),
        more=max(0, len(seen) - MAX_ROWS),
        total=_row(_total(seen)) if seen else None,
        workers=told.answered,
        silent=told.silent,
    )


def _seen(told: HomeTraffic, asking: Asking) -> list[CallerTraffic]:
    """Return the active callers that the user may see, the busiest first."""
    callers = list(told.callers)
    if not asking.sees_all:
        own = {f"user:{asking.user_name}", f"session:{asking.user_name}"}
        own |= {f"token:{one.name}" for one in token_selectors.tokens(owner_id=asking.user_id)}
        callers = [one for one in callers if one.key in own]
    return sorted(callers, key=lambda one: (-one.total("records"), -one.total("requests"), one.key))


def _total(seen: list[CallerTraffic]) -> CallerTraffic:
    columns = zip(*(one.steps for one in seen), strict=True)
    return CallerTraffic(
        key="",
        open=sum(one.open for one in seen),
        steps=tuple(tuple(map(sum, zip(*step, strict=True))) for step in columns),
    )


def _rate(rate: float) -> str:
    if 0 < rate < 0.1:
        return "less than 0.1"
    return f"{rate:,.1f}".removesuffix(".0")


def _row(one: CallerTraffic) -> TrafficRow:
    kind, _, name = one.key.partition(":")
    name, kind = SPECIAL.get(one.key, (name, KINDS.get(kind, kind)))
    # If no record moved, the picture shows calls.
    shown = "records" if one.total("records") else "requests"
    rates = [max(0, amount) / STEP_S for amount in one.amounts(shown)]
    return TrafficRow(
        name=name,
        kind=kind,
        requests=one.total("requests"),
        records=one.total("records"),
        errors=one.total("errors"),
        bytes_in=one.total("bytes_in"),
        bytes_out=one.total("bytes_out"),
        open=one.open,
        picture=spark(
            rates, f"{shown} in a second: at most {_rate(max(rates))}, {_rate(rates[-1])} now"
        ),
    )
