"""Tables with columns of all types, and changes of their rows, which two connectors tell."""

from typing import Any, Final

import psycopg

EXTENSIONS: Final = ("citext", "cube", "hstore", "isn", "ltree")
# Types of PostGIS and pgvector, which tests make of texts: only their names and forms matter.
FAKED: Final = ("geography", "geometry", "halfvec", "sparsevec", "vector")
# Those whose values Debezium cannot do without where a column is never null.
OPTIONAL_ONLY: Final = ("vec", "hv", "sv", "geo", "geo0", "gg", "ageo", "avec")
# Column name, type, value. DIFFERENCES lists differences in value or schema.
TYPES: Final = """
bool|boolean|true
i2|int2|-5
i4|int4|7
i8|int8|9007199254740993
oid|oid|4294967295
f4|float4|1.1
f8|float8|2.5e300
f4nan|float4|'NaN'
f8inf|float8|'-Infinity'
num|numeric|12345.678900
numi|numeric|100
num52|numeric(5,2)|12.3
num5|numeric(5)|123
num5m2|numeric(5,-2)|12345
txt|text|'a''b é'
vc|varchar(20)|'vc'
ch|char(5)|'ab'
bp|bpchar|'ab  '
qc|"char"|'x'
nm|name|'nm'
ts|timestamp|'2024-01-02 03:04:05.123456'
ts0|timestamp(0)|'2024-01-02 03:04:05.123456'
ts3|timestamp(3)|'2024-01-02 03:04:05.123456'
ts4|timestamp(4)|'2024-01-02 03:04:05.123456'
tz|timestamptz|'2024-01-02 03:04:05.123456+02'
tz3|timestamptz(3)|'2024-01-02 03:04:05.1204+05:30'
tz0|timestamptz(0)|'2024-01-02 03:04:05.1234+05:30'
tzinf|timestamptz|'infinity'
tzbc|timestamptz|'0044-03-15 12:00:00 BC'
tzfar|timestamptz|'20000-01-01 00:00:00'
d|date|'2024-02-29'
dold|date|'0001-01-01'
t|time|'03:04:05.123456'
t0|time(0)|'03:04:05.123456'
t3|time(3)|'03:04:05.123456'
ttz|timetz|'03:04:05.123456+02'
ttz2|timetz(2)|'03:04:05.123456-05:30'
ttz24|timetz|'24:00:00+00'
u|uuid|'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
j|json|'{"a": 1}'
jb|jsonb|'{"b":2, "a":1}'
jp|jsonpath|'$.a'
by|bytea|'\\xfbffdeadbeef'
iv|interval|'1 year 2 months 3 days 04:05:06.789'
ivn|interval|'-1 year -2 months +3 days -04:05:06.789'
mon|money|'$1,234.56'
monn|money|'-$1.50'
ine|inet|'192.168.1.5/24'
cid|cidr|'10.0.0.0/8'
mac|macaddr|'08:00:2b:01:02:03'
mac8|macaddr8|'08:00:2b:01:02:03:04:05'
b1|bit(1)|B'1'
b3|bit(3)|B'101'
b20|bit(20)|B'00000000000000000001'
bv|bit varying(20)|B'0000000000'
bvu|bit varying|B'10110000000000001'
x|xml|'<a/>'
r4|int4range|'[1,5)'
r8|int8range|'[1,5)'
rn|numrange|'(1.5,2.5]'
rts|tsrange|'[2024-01-01 00:00,2024-01-02 00:00)'
rtz|tstzrange|'[2024-01-01 00:00+00,2024-01-02 00:00+00)'
rd|daterange|'[2024-01-01,2024-02-01)'
rm|int4multirange|'{[1,5),[7,9)}'
mood|mood|'sad'
addr|address|'(1,x)'
dom|positive|5
domn|price|5.5
domt|words|'x'
domd|more|6
pt|point|'(1.5,2.5)'
lt|ltree|'Top.A'
lq|lquery|'Top.*'
ct|citext|'CiT'
hs|hstore|'a=>1,b=>NULL,"c d"=>"e\\"f"'
isb|isbn|'978-0-393-04002-9'
tsv|tsvector|'a fat cat'
tsq|tsquery|'fat & rat'
pglsn|pg_lsn|'16/B374D848'
xid8|xid8|'7'
ai2|int2[]|'{1,2}'
ai4|int4[]|'{1,NULL,3}'
ai8|int8[]|'{1,2}'
af4|float4[]|'{1.5,2}'
af8|float8[]|'{1.5,NaN}'
an|numeric[]|'{1.5,2.25,100,3.0}'
an52|numeric(5,2)[]|'{1.5,2.25}'
atx|text[]|'{a,"b c",NULL,"NULL","q\\"x",""}'
avc|varchar(5)[]|'{a}'
ach|char(3)[]|'{a}'
abo|bool[]|'{t,f}'
ats|timestamp[]|'{2024-01-02 03:04:05.123456}'
atz|timestamptz[]|'{2024-01-02 03:04:05.123456+02}'
ad|date[]|'{2024-02-29}'
at|time[]|'{03:04:05.123456}'
attz|timetz[]|'{03:04:05.123456+02}'
au|uuid[]|'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'
aj|json[]|array['{"a":1}'::json]
ajb|jsonb[]|array['{"a":1}'::jsonb]
aby|bytea[]|array['\\x01'::bytea]
ain|inet[]|'{10.0.0.1}'
acid|cidr[]|'{10.0.0.0/8}'
amac|macaddr[]|'{08:00:2b:01:02:03}'
amood|mood[]|'{sad,ok}'
ar4|int4range[]|'{"[1,3)"}'
aci|citext[]|'{A}'
aoid|oid[]|'{1}'
alt|ltree[]|'{A.B}'
ahs|hstore[]|array['a=>1'::hstore]
ae|int4[]|'{}'
aqc|"char"[]|'{a}'
amac8|macaddr8[]|'{08:00:2b:01:02:03:04:05}'
atsv|tsvector[]|array['a b'::tsvector]
aisbn|isbn[]|array['978-0-393-04002-9'::isbn]
ar8|int8range[]|'{"[1,3)"}'
arts|tsrange[]|array['[2024-01-01,2024-01-02)'::tsrange]
ean|ean13|'978-0-393-04002-9'
vec|vector|'[1,2.5,-3]'
hv|halfvec|'[1,2.5,-3]'
sv|sparsevec|'{1:1.5,3:2}/5'
geo|geometry|'0101000020E61000000000000000000840000000000000F03F'
geo0|geometry|'0101000000000000000000F03F0000000000000040'
gg|geography|'0101000020E61000000000000000000840000000000000F03F'
ageo|geometry[]|array['0101000000000000000000F03F0000000000000040'::geometry]
avec|vector[]|array['[1]'::vector]
"""
COLUMNS: Final = tuple(line.split("|") for line in TYPES.strip().split("\n"))
# What the two tell otherwise, by column, and why ours is as it is.
DIFFERENCES: Final = {
    "num5m2": "Debezium takes a scale below zero for one of 2046",
    "nm": "Debezium tells null for a name that it reads from the log",
    "at": "Debezium cuts microseconds of times within arrays",
    "attz": "Debezium cuts fractions of times within arrays",
    # Of some types Debezium's elements of arrays are never null, and it ends at one that is.
    **dict.fromkeys(("amood", "atsv", "aisbn", "avec"), "elements of an array may be null"),
    "both": "Debezium takes the first text of an expression for a default",
    "who": "Debezium takes the name of a function without brackets for a default",
    "bits": "Debezium takes the digits of a number for bits in a default",
    "sequence": "Debezium has no last commit before its first event; ours is that of the snapshot",
}
# The same under `binary.handling.mode` other than bytes.
WRITTEN_DIFFERENCES: Final = {
    "raw": "Debezium tells null for bytes that the log lacks, unless they are written as hex",
    "raws": "Debezium tells null for arrays of bytes that the log lacks",
}
_DEFAULTS: Final = """
    id serial PRIMARY KEY, b bool NOT NULL DEFAULT true, b2 bool DEFAULT pg_is_in_recovery(),
    i2 int2 DEFAULT 3, i4 int NOT NULL DEFAULT 1+1, i8 int8 DEFAULT -9,
    big int8 DEFAULT 9223372036854775807, gen int GENERATED ALWAYS AS IDENTITY,
    f4 float4 DEFAULT 1.5, f8 float8 NOT NULL DEFAULT 'NaN', f8e float8 DEFAULT 1e10,
    n numeric DEFAULT 1.25, n52 numeric(5,2) NOT NULL DEFAULT 1.5, n0 numeric(5) DEFAULT 7,
    tx text DEFAULT 'it''s', vc varchar(10) NOT NULL DEFAULT 'a::b', ch char(4) DEFAULT 'ab',
    call text DEFAULT upper('a'), lines text DEFAULT E'a\nb', "empty" text NOT NULL DEFAULT '',
    nothing text DEFAULT NULL, "both" text DEFAULT 'a' || 'b', who text DEFAULT current_user,
    ts timestamp DEFAULT '2024-01-02 03:04:05', ts3 timestamp(3) DEFAULT '2024-01-02 03:04:05',
    tn timestamp NOT NULL DEFAULT now(), tu timestamp DEFAULT (now() AT TIME ZONE 'utc'),
    tz timestamptz DEFAULT '2024-01-02 03:04:05+00', tzn timestamptz NOT NULL DEFAULT now(),
    tzc timestamptz(3) DEFAULT CURRENT_TIMESTAMP, d date DEFAULT '2024-02-29',
    dn date DEFAULT current_date, t time DEFAULT '03:04:05', tl time(3) DEFAULT '01:02:03',
    lt time DEFAULT LOCALTIME, ttz timetz DEFAULT '03:04:05+00',
    u uuid DEFAULT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', ug uuid DEFAULT gen_random_uuid(),
    j json DEFAULT '{}', jb jsonb NOT NULL DEFAULT '[]', jc jsonb DEFAULT jsonb_build_object(),
    by bytea DEFAULT '\\x01', iv interval DEFAULT '1 day', mon money DEFAULT 5,
    ine inet DEFAULT '10.0.0.1', bt bit(3) DEFAULT B'101', bits bit(3) DEFAULT 1::bit(3),
    b1 bit(1) DEFAULT B'1', x xml DEFAULT '<a/>', mo mood NOT NULL DEFAULT 'ok',
    moc mood DEFAULT enum_first(NULL::mood), dom positive DEFAULT 4, pt point DEFAULT '(1,2)',
    arr int[] DEFAULT '{1,2}', hs hstore DEFAULT 'a=>1', ct citext DEFAULT 'C',
    r int4range DEFAULT '[1,2)', oi oid DEFAULT 7, nm name DEFAULT 'x'
"""
# Each value is of some ten thousand bytes, so that it is kept beside its row.
_LARGE: Final = """
    INSERT INTO large SELECT 1, 'a', g, g::bytea, to_json(g), to_jsonb(g), xmlelement(name a, g),
        hstore('a', g), n, n, array[g], u, array[g::bytea], g, array[to_jsonb(g)]
    FROM (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 2000) AS i) AS s (g),
        (SELECT array_agg(i) FROM generate_series(1, 20000) AS i) AS numbers (n),
        (SELECT array_agg(gen_random_uuid()) FROM generate_series(1, 2000)) AS uuids (u)
"""
CHANGES: Final = (
    "UPDATE types SET txt = 'other'",
    "DELETE FROM types WHERE id = 2",
    "DELETE FROM required",
    "INSERT INTO defaults DEFAULT VALUES",
    "DELETE FROM defaults",
    "INSERT INTO keys VALUES (1, 'x', 3), (2, 'y', 3)",
    "UPDATE keys SET c = 4 WHERE a = 1",
    "UPDATE keys SET a = 9 WHERE a = 2",
    "DELETE FROM keys WHERE a = 9",
    "INSERT INTO \"We ird-Näme.x\" VALUES (1, 2, '3')",
    "INSERT INTO uniques VALUES (1, 'x')",
    "INSERT INTO keyless VALUES (1, 'x')",
    _LARGE,
    "UPDATE large SET note = 'b'",
    "ALTER TABLE large REPLICA IDENTITY FULL",
    "UPDATE large SET note = 'c'",
    "ALTER TABLE keys ADD COLUMN d text",
    "INSERT INTO keys VALUES (3, 'z', 3, 'new')",
    "ALTER TABLE keys DROP COLUMN c",
    "UPDATE keys SET d = 'newer' WHERE a = 3",
    "TRUNCATE keys, keyless",
)


def make(database: psycopg.Connection[Any]) -> None:
    """Make the tables, each with what is in it before anybody reads."""
    for name in EXTENSIONS:
        database.execute(f"CREATE EXTENSION {name}")
    for name in FAKED:
        fake(database, name)
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'a,b')")
    database.execute("CREATE TYPE address AS (a int, b text)")
    for domain, of in (
        ("positive", "int CHECK (value > 0)"),
        ("price", "numeric(6, 2)"),
        ("words", "text"),
        ("more", "positive"),
    ):
        database.execute(f"CREATE DOMAIN {domain} AS {of}")
    for table, required in (("types", ""), ("required", " NOT NULL")):
        columns = ", ".join(
            f'"{name}" {of}{"" if name in OPTIONAL_ONLY else required}' for name, of, _ in COLUMNS
        )
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
        insert(database, table)
    database.execute("INSERT INTO types (id) VALUES (2)")
    database.execute("ALTER TABLE types REPLICA IDENTITY FULL")
    database.execute(f"CREATE TABLE defaults ({_DEFAULTS})")
    database.execute("CREATE TABLE keys (a int, b text, c int, PRIMARY KEY (b, a))")
    database.execute('CREATE TABLE "We ird-Näme.x" (id int PRIMARY KEY, "Co l-1" int, "ö" text)')
    database.execute("CREATE TABLE uniques (a int NOT NULL UNIQUE, b text)")
    database.execute("CREATE TABLE keyless (a int, b text)")
    database.execute(
        "CREATE TABLE large (id int PRIMARY KEY, note text, tx text, raw bytea, j json, jb jsonb,"
        " x xml, hs hstore, ai int[], a8 int8[], atx text[], au uuid[], raws bytea[],"
        " ct citext NOT NULL, ajb jsonb[])"
    )
    for column in ("tx", "raw", "j", "jb", "x", "hs"):
        database.execute(f"ALTER TABLE large ALTER {column} SET STORAGE EXTERNAL")


def fake(database: psycopg.Connection[Any], name: str) -> None:
    """Make a type that is written and stored as a text is."""
    database.execute(f"CREATE TYPE {name}")
    database.execute(
        f"CREATE FUNCTION {name}_in(cstring) RETURNS {name}"
        " AS 'textin' LANGUAGE internal IMMUTABLE STRICT"
    )
    database.execute(
        f"CREATE FUNCTION {name}_out({name}) RETURNS cstring"
        " AS 'textout' LANGUAGE internal IMMUTABLE STRICT"
    )
    database.execute(f"CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, LIKE = text)")


def insert(database: psycopg.Connection[Any], table: str) -> None:
    names = ", ".join(f'"{name}"' for name, _, _ in COLUMNS)
    values = ", ".join(value for _, _, value in COLUMNS)
    query = f"INSERT INTO {table} (id, {names}) VALUES (1, {values})"  # noqa: S608 - all our own
    database.execute(query)


def change(database: psycopg.Connection[Any]) -> None:
    """Change rows in all ways that there are."""
    for statement in CHANGES:
        database.execute(statement)
