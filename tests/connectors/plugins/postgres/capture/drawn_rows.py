"""Rows of drawn values, for types whose values take many forms."""

import json
import uuid
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import psycopg
from psycopg import sql

CHARACTERS: Final = "aZ0 \"'\\,{}()[]\t\n€ü😀-:=>"


def text(random: Random) -> str:
    return "".join(random.choices(CHARACTERS, k=random.randrange(9)))


def whole(bits: int) -> Callable[[Random], str]:
    return lambda random: str(random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)))


def number(random: Random, *, digits: int = 30, scale: int = 12) -> str:
    written = "".join(random.choices("0123456789", k=random.randrange(1, digits - scale)))
    fraction = "".join(random.choices("0123456789", k=random.randrange(scale + 1)))
    return random.choice(("", "-")) + written + ("." + fraction if fraction else "")


def real(random: Random) -> str:
    return repr(random.choice((0.0, -1.5, random.uniform(-1, 1) * 10 ** random.randrange(-9, 15))))


def date(random: Random) -> str:
    year = random.choice((random.randrange(1900, 2100), random.randrange(1, 9999)))
    return f"{year:04d}-{random.randrange(1, 13):02d}-{random.randrange(1, 29):02d}"


def clock(random: Random) -> str:
    fraction = "".join(random.choices("0123456789", k=random.randrange(7)))
    parts = (random.randrange(24), random.randrange(60), random.randrange(60))
    return "{:02d}:{:02d}:{:02d}".format(*parts) + ("." + fraction if fraction else "")


def zone(random: Random) -> str:
    return f"{random.choice('+-')}{random.randrange(14):02d}:{random.choice(('00', '30'))}"


def moment(random: Random) -> str:
    return f"{date(random)} {clock(random)}"


def interval(random: Random) -> str:
    units = ("years", "mons", "days", "hours", "minutes")
    told = [f"{random.randrange(-99, 99)} {unit}" for unit in units if random.random() < 0.5]
    return " ".join([*told, f"{random.uniform(-1e4, 1e4):.6f} seconds"])


def bits(random: Random) -> str:
    return "".join(random.choices("01", k=random.randrange(1, 40)))


def document(random: Random) -> str:
    return json.dumps({text(random): text(random), "n": random.randrange(9)})


def octets(random: Random) -> str:
    return "\\x" + random.randbytes(random.randrange(12)).hex()


def array(draw: Callable[[Random], str]) -> Callable[[Random], list[str | None]]:
    def drawn(random: Random) -> list[str | None]:
        count = random.randrange(4)
        return [None if random.random() < 0.2 else draw(random) for _ in range(count)]

    return drawn


# Type by what draws a value of it; the columns have the names of their places.
DRAWN: Final[Sequence[tuple[str, Callable[[Random], Any]]]] = (
    ("int2", whole(16)),
    ("int4", whole(32)),
    ("int8", whole(64)),
    ("float8", real),
    ("numeric", number),
    ("numeric(20,6)", lambda random: number(random, digits=18, scale=6)),
    ("money", lambda random: number(random, digits=12, scale=2)),
    ("text", text),
    ("varchar(8)", text),
    ("char(9)", text),
    ("date", date),
    ("time", clock),
    ("time(2)", clock),
    ("timetz", lambda random: clock(random) + zone(random)),
    ("timestamp", moment),
    ("timestamp(3)", moment),
    ("timestamptz", lambda random: moment(random) + zone(random)),
    ("timestamptz(4)", lambda random: moment(random) + zone(random)),
    ("interval", interval),
    ("bit varying", bits),
    ("bytea", octets),
    ("json", document),
    ("jsonb", document),
    ("uuid", lambda random: str(uuid.UUID(int=random.getrandbits(128)))),
    ("hstore", lambda random: {text(random): random.choice((None, text(random)))}),
    ("point", lambda random: f"({random.uniform(-9, 9)},{random.randrange(-9, 9)})"),
    ("text[]", array(text)),
    ("numeric[]", array(number)),
    ("int8[]", array(whole(64))),
    ("date[]", array(date)),
    # Before 1582 Debezium has days of another calendar within arrays.
    ("timestamp[]", array(lambda random: f"{random.randrange(1600, 2100)}-02-28 {clock(random)}")),
    ("bytea[]", array(octets)),
)
# Debezium multiplies seconds as a float, and may lose a microsecond by it.
INTERVAL: Final = next(f"c{place}" for place, (of, _) in enumerate(DRAWN) if of == "interval")
COLUMNS: Final = tuple((f"c{place}", of, draw) for place, (of, draw) in enumerate(DRAWN))


def make(database: psycopg.Connection[Any]) -> None:
    columns = ", ".join(f"{name} {of}" for name, of, _ in COLUMNS)
    database.execute(f"CREATE TABLE drawn (id serial PRIMARY KEY, {columns})")


def insert(database: psycopg.Connection[Any], random: Random, count: int) -> None:
    """Insert so many rows, a tenth of whose cells are null."""
    columns = (sql.Identifier(name) for name, _, _ in COLUMNS)
    cells = (sql.SQL("%s::") + sql.SQL(of) for _, of, _ in COLUMNS)
    query = sql.SQL("INSERT INTO drawn ({}) VALUES ({})").format(
        sql.SQL(", ").join(columns), sql.SQL(", ").join(cells)
    )
    with database.cursor() as cursor:
        cursor.executemany(query, [row(random) for _ in range(count)])


def row(random: Random) -> list[Any]:
    return [None if random.random() < 0.1 else cell(draw(random)) for _, _, draw in COLUMNS]


def cell(value: Any) -> Any:
    """Write an hstore as its text; the client writes arrays itself."""
    if not isinstance(value, dict):
        return value
    return ", ".join(f"{quoted(key)}=>{quoted(one)}" for key, one in value.items())


def quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
