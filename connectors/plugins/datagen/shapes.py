"""Defines the kinds of generated records: a schema for each, and its values.

A record is a function of a random source and the record's number: the same arguments give the same
record, in every process.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from connectors.sdk.schemas import FLOAT64, INT32, INT64, STRING, Field, Schema, Struct, Type

# The first record has the first second of 2026; each further one is a second later, so that times
# in values do not depend on the clock.
FIRST_MS: Final = 1_767_225_600_000
STEP_MS: Final = 1000
GENDERS: Final = ("MALE", "FEMALE", "OTHER")
CITIES: Final = (
    ("Prague", "PR", 11000),
    ("Brno", "JM", 60200),
    ("Vienna", "WI", 1010),
    ("Berlin", "BE", 10115),
    ("Meran", "BZ", 39012),
)
PAGES: Final = (
    ("GET /index.html", 200),
    ("GET /images/track.png", 200),
    ("GET /site/user_status.html", 200),
    ("POST /orders", 201),
    ("GET /site/login.html", 302),
    ("GET /missing.html", 404),
    ("POST /orders", 503),
)
AGENTS: Final = ("Mozilla/5.0 (X11; Linux x86_64)", "curl/8.9.1", "Mozilla/5.0 (iPhone)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of record. `fill` returns the values in the order of the schema's fields."""

    schema: Schema
    key_field: str
    fill: Callable[[Random, int], tuple[Any, ...]]

    def make(self, random: Random, number: int) -> Struct:
        values = self.fill(random, number)
        names = (field.name for field in self.schema.fields)
        return Struct(self.schema, dict(zip(names, values, strict=True)))


def _struct(name: str, **fields: Schema) -> Schema:
    return Schema(
        type=Type.STRUCT,
        name=f"samsa.datagen.{name}",
        fields=tuple(Field(name=field, schema=schema) for field, schema in fields.items()),
    )


ADDRESS: Final = _struct("address", city=STRING, state=STRING, zipcode=INT64)


def time_of(number: int) -> int:
    return FIRST_MS + number * STEP_MS


def _order(random: Random, number: int) -> tuple[Any, ...]:
    city, state, zipcode = random.choice(CITIES)
    address = Struct(ADDRESS, {"city": city, "state": state, "zipcode": zipcode})
    item = f"Item_{random.randrange(1000)}"
    return time_of(number), number, item, round(random.uniform(0.1, 10), 2), address


def _user(random: Random, number: int) -> tuple[Any, ...]:
    region = f"Region_{random.randint(1, 9)}"
    return time_of(number), f"User_{random.randint(1, 9)}", region, random.choice(GENDERS)


def _pageview(random: Random, number: int) -> tuple[Any, ...]:
    return time_of(number), f"User_{random.randint(1, 9)}", f"Page_{random.randint(10, 99)}"


def _click(random: Random, number: int) -> tuple[Any, ...]:
    request, status = random.choice(PAGES)
    # From the addresses reserved for documentation.
    ip = f"203.0.113.{random.randint(1, 254)}"
    size = random.randrange(200, 20_000)
    user = random.randint(1, 40)
    return ip, user, time_of(number), request, status, size, random.choice(AGENTS)


SHAPES: Final[Mapping[str, Shape]] = {
    "orders": Shape(
        schema=_struct(
            "orders",
            ordertime=INT64,
            orderid=INT64,
            itemid=STRING,
            orderunits=FLOAT64,
            address=ADDRESS,
        ),
        key_field="orderid",
        fill=_order,
    ),
    "users": Shape(
        schema=_struct("users", registertime=INT64, userid=STRING, regionid=STRING, gender=STRING),
        key_field="userid",
        fill=_user,
    ),
    "pageviews": Shape(
        schema=_struct("pageviews", viewtime=INT64, userid=STRING, pageid=STRING),
        key_field="userid",
        fill=_pageview,
    ),
    "clickstream": Shape(
        schema=_struct(
            "clickstream",
            ip=STRING,
            userid=INT32,
            time=INT64,
            request=STRING,
            status=INT32,
            bytes=INT32,
            agent=STRING,
        ),
        key_field="ip",
        fill=_click,
    ),
}
