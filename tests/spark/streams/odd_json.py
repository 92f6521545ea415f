"""Values that are nearly, or just, an object of JSON, drawn from a seed."""

import random
from typing import Final

ATOMS: Final = [
    *('"x"', '"ä"', '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\n"', '""', '"\\/"', '"\\"'),
    *("0", "-0", "1", "-1", "1.0", "1e3", "1E+2", "1e-400", "-0.0", "12345678901234567890", "0.1"),
    *("9223372036854775807", "-9223372036854775808", "1.7976931348623157e308", "1.8e308", "00"),
    *("true", "false", "null", "[]", "[1]", "{}", '{"a":1}', "NaN", "-Infinity", ".5", "5.", "+1"),
    *('"2026-01-01T00:00:00Z"', '"2026-13-01T00:00:00Z"', '"2026-01-01T00:00:00.1234567Z"'),
    *(
        '"0001-01-01T00:00:00+17:59"',
        '"9999-12-31T23:59:59.999999-17:59"',
        '"1500-02-29T00:00:00Z"',
    ),
    *('"2024-02-29T12:00:00.5-03:30"', '"1582-10-10T00:00:00Z"', '"1969-12-31T23:59:59.999Z"'),
    *("0x1", "1_0", '"\t"', "'x'", "tru", '"a', 'a"', "\u00a0", "-", "1e", '"\\x"', '"\\uzzzz"'),
    *("//c", "/**/1", '"\\u0000"', "\ufeff1", '"\\ud800\\udc00\\ud800"'),
]
FIELDS: Final = {"a": "text", "n": "long", "d": "double", "b": "boolean", "t": "time"}
NAMES: Final = [f'"{name}"' for name in FIELDS]
ODD_NAMES: Final = [*NAMES, '"A"', '"z"', '"\\u0061"', "a", "'a'", '""']
ENDS: Final = ["}"] * 30 + ["", "}}", ",}", "} x", "]"]
SPACES: Final = [""] * 30 + [" ", "\n", "\t", "\r", "\f"]


def odd_values(count: int, *, seed: int) -> list[bytes]:
    draw = random.Random(seed)
    return [odd_value(draw) for _ in range(count)]


def odd_value(draw: random.Random) -> bytes:
    parts = [
        draw.choice(SPACES)
        + draw.choice(ODD_NAMES if draw.random() < 0.3 else NAMES)
        + draw.choice([":"] * 30 + ["=", ""])
        + draw.choice(SPACES)
        + draw.choice(ATOMS)
        for _ in range(draw.choice([0, 1, 1, 2, 3]))
    ]
    comma = draw.choice([","] * 30 + [";", ",,"])
    text = draw.choice(SPACES) + "{" + comma.join(parts) + draw.choice(ENDS) + draw.choice(SPACES)
    value = bytearray(text.encode())
    if draw.random() < 0.05:
        value[draw.randrange(len(value))] = draw.randrange(256)
    return bytes(value)
