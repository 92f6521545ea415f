"""What queries may say, as Spark's own parser reads them."""

from typing import Any

import pytest

from connectors.plugins.spark import plan_trees, statements
from connectors.sdk.errors import ConfigError
from tests.extras import requires

pytestmark = [requires("java", "spark"), pytest.mark.slow]

GOOD = (
    "SELECT * FROM orders",
    "SELECT orders.*, _offset FROM orders WHERE id > 1 AND NOT (total <= 2.5 OR name IS NULL)",
    "SELECT upper(name) AS n, CAST(id AS STRING), id + 1, -total, id % 2, name || 'x' FROM orders",
    "SELECT CASE WHEN id = 1 THEN 'a' ELSE 'b' END c, name LIKE 'a%', id IN (1, 2) FROM Orders",
    "SELECT name ILIKE '%a%' AND name NOT LIKE 'a%b' FROM orders",
    "SELECT id BETWEEN 1 AND 2, a.b.c, tags[0], id <=> 2, substring(name, 1, 2) FROM orders",
    "SELECT explode(tags) AS tag, transform(tags, x -> lower(x)) FROM orders",
    "SELECT trim(BOTH 'x' FROM name), current_timestamp, date '2026-01-01', name::int FROM orders",
    "SELECT extract(YEAR FROM _timestamp), id IS DISTINCT FROM 2, array(1), struct(id) FROM orders",
    "WITH big AS (SELECT * FROM orders WHERE total > 9), o AS (SELECT * FROM big) SELECT id FROM o",
    "SELECT id FROM orders UNION ALL SELECT id FROM (SELECT id FROM orders) AS o",
    "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "SELECT o.id FROM orders o JOIN customers c USING (id) CROSS JOIN customers d",
    "SELECT o.id FROM customers c RIGHT JOIN orders o ON o.customer = c.id",
    "SELECT * FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.id",
    " AND ".join(["SELECT * FROM orders WHERE id <> 0", *(f"id <> {n}" for n in range(1, 60))]),
)
# queries, with words of what is said of them
STATEFUL = (
    ("SELECT count(*) FROM orders", "count()"),
    ("SELECT SUM(id) FROM orders", "SUM()"),
    ("SELECT name FROM orders GROUP BY name", "GROUP BY"),
    ("SELECT DISTINCT id FROM orders", "DISTINCT"),
    ("SELECT id FROM orders UNION SELECT id FROM orders", "DISTINCT"),
    ("SELECT id FROM orders ORDER BY id", "ORDER BY"),
    ("SELECT id FROM orders LIMIT 1", "LIMIT"),
    ("SELECT id FROM orders LIMIT 1 OFFSET 2", "LIMIT"),
    ("SELECT row_number() OVER (ORDER BY id) FROM orders", "window function"),
    ("SELECT id FROM orders HAVING id > 1", "HAVING"),
    ("SELECT id FROM orders EXCEPT SELECT id FROM customers", "EXCEPT"),
    ("SELECT o.id FROM orders o JOIN orders p ON o.id = p.id", "joins two topics"),
    ("WITH p AS (SELECT * FROM orders) SELECT o.id FROM orders o, p", "joins two topics"),
    ("SELECT window(_timestamp, '1 hour') FROM orders", "window()"),
)
WRONG_IN_BATCHES = (
    ("SELECT c.id FROM customers c LEFT JOIN orders o ON o.id = c.id", "LeftOuter"),
    ("SELECT c.id FROM orders o FULL JOIN customers c ON o.id = c.id", "FullOuter"),
    ("SELECT c.id FROM customers c LEFT SEMI JOIN orders o ON o.id = c.id", "LeftSemi"),
    ("SELECT id FROM orders UNION ALL SELECT id FROM customers", "tables only"),
    ("SELECT id FROM customers", "reads no topic"),
    ("SELECT 1", "reads no topic"),
    ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
)
# What Spark's parser refuses by itself.
PARSER = "the parser"
OUTSIDE = (
    ("SELECT * FROM parquet.`/etc`", "reads parquet./etc"),
    ("SELECT * FROM text.`file:///etc/passwd`", "reads text."),
    ("SELECT * FROM orders JOIN csv.`/etc/passwd` p", "reads csv."),
    ("SELECT * FROM orders WHERE id IN (SELECT id FROM text.`/etc/passwd`)", "IN with a query"),
    ("SELECT (SELECT max(value) FROM text.`/etc/passwd`) FROM orders", "within an expression"),
    ("SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM customers)", "EXISTS"),
    ("WITH unread AS (SELECT * FROM text.`/etc/passwd`) SELECT id FROM orders", "reads text."),
    ("SELECT * FROM spark_catalog.default.orders", "reads spark_catalog"),
    ("SELECT * FROM default.orders", "reads default.orders"),
    ("SELECT * FROM others", "reads others"),
    ("SELECT * FROM orders WITH (path = '/etc')", "StringMap"),
    ("SELECT * FROM STREAM orders", "not served"),
    ("SELECT * FROM orders VERSION AS OF 1", "not served"),
    ("SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM orders", "function reflect"),
    ("SELECT java_method('java.lang.Runtime', 'getRuntime') FROM orders", "function java_method"),
    ("SELECT try_reflect('a', 'b') FROM orders", "function try_reflect"),
    ("SELECT upper(reflect('a', 'b')) FROM orders", "function reflect"),
    ("SELECT transform(tags, x -> reflect('a', x)) FROM orders", "function reflect"),
    ("SELECT CASE WHEN reflect('a', 'b') = 1 THEN 1 END FROM orders", "function reflect"),
    ("SELECT id FROM orders WHERE reflect('a', 'b') = 1", "function reflect"),
    ("SELECT id FROM orders o JOIN customers c ON reflect('a', 'b') = 1", "function reflect"),
    ("SELECT id FROM orders WHERE id IN (reflect('a', 'b'))", "function reflect"),
    ("SELECT tags[reflect('a', 'b')] FROM orders", "function reflect"),
    ("SELECT system.builtin.upper(name) FROM orders", "function system.builtin.upper"),
    ("SELECT `reflect`('a', 'b') FROM orders", "function reflect"),
    ("SELECT from_avro(value, '{}') FROM orders", "function from_avro"),
    ("SELECT input_file_name() FROM orders", "function input_file_name"),
    ("SELECT customers._metadata.file_path FROM orders, customers", "_metadata"),
    ("SELECT repeat('a', 2000000000) FROM orders", "function repeat"),
    ("SELECT regexp_replace(name, '(a+)+', '') FROM orders", "function regexp_replace"),
    ("SELECT name RLIKE '(a+)+b' FROM orders", "RLIKE"),
    ("SELECT name LIKE '%a%a%a%a%b' FROM orders", "may never end"),
    ("SELECT name ILIKE 'a_b' FROM orders", "may never end"),
    ("SELECT name LIKE 'a/%%' ESCAPE '/' FROM orders", "may never end"),
    ("SELECT name LIKE concat('%', name) FROM orders", "pattern that is not text"),
    ("SELECT from_json(name, 'a INT') FROM orders", "function from_json"),
    ("SELECT * FROM range(10)", "function in the place of a table"),
    ("SELECT * FROM read_files('/etc')", "function in the place of a table"),
    ("SELECT * FROM orders, LATERAL (SELECT 1)", "not served"),
    ("SELECT * FROM orders LATERAL VIEW reflect('a', 'b') t AS x", "LATERAL VIEW"),
    ("SELECT * FROM VALUES (1)", "not served"),
    ("SELECT TRANSFORM (id) USING 'cat' AS x FROM orders", "starts a program"),
    ("SELECT /*+ BROADCAST(orders) */ * FROM orders", "not served"),
    ("SELECT IDENTIFIER('reflect')('a', 'b') FROM orders", "not served"),
    ("SELECT * FROM IDENTIFIER('parquet.`/etc`')", "reads parquet./etc"),
    ("SELECT :name FROM orders", "not served"),
    ("WITH RECURSIVE r AS (SELECT id FROM orders) SELECT * FROM r", "RECURSIVE"),
    ("WITH orders AS (SELECT * FROM orders) SELECT * FROM orders", "twice"),
    ("WITH a AS (SELECT 1), A AS (SELECT 2) SELECT * FROM orders", PARSER),
    ("FROM orders INSERT INTO t SELECT *", "not served"),
    ("CREATE TABLE t AS SELECT * FROM orders", "not served"),
    ("CREATE TEMPORARY FUNCTION f AS 'a.B' USING JAR '/x.jar'", "not served"),
    ("ADD JAR '/tmp/x.jar'", "not served"),
    ("SET spark.sql.runSQLOnFiles=true", "not served"),
    ("DECLARE x = 1", "not served"),
    ("EXECUTE IMMEDIATE 'SELECT 1'", "not served"),
    ("BEGIN SELECT 1; END", "not served"),
    ("EXPLAIN SELECT * FROM orders", "not served"),
    ("CACHE TABLE x AS SELECT * FROM orders", "not served"),
    ("DESCRIBE QUERY SELECT * FROM orders", "not served"),
    ("SELECT 1 FROM orders |> SELECT 1", "not served"),
)


def check(spark: Any, query: str) -> None:
    tree = plan_trees.tree(plan_trees.parsed(spark, query))
    statements.require(tree, views=["orders"], tables=["customers"])


def test_queries_of_one_record_each_are_taken(spark: Any) -> None:
    refused = {}
    for query in GOOD:
        try:
            check(spark, query)
        except ConfigError as error:
            refused[query] = str(error)

    assert refused == {}


@pytest.mark.parametrize("table", [STATEFUL, WRONG_IN_BATCHES, OUTSIDE])
def test_queries_that_are_wrong_or_reach_out_are_refused(
    spark: Any, table: tuple[tuple[str, str], ...]
) -> None:
    from pyspark.errors import ParseException  # noqa: PLC0415 - an extra

    said = {}
    for query, words in table:
        try:
            check(spark, query)
        except ConfigError as error:
            if words in str(error):
                continue
            said[query] = str(error)
        except ParseException as error:
            if words == PARSER:
                continue
            said[query] = str(error)[:200]
        else:
            said[query] = "taken"

    assert said == {}


def test_every_refused_kind_is_said_to_need_a_stream_or_another_way(spark: Any) -> None:
    with pytest.raises(ConfigError, match="write a stream for that"):
        check(spark, "SELECT name, count(*) FROM orders GROUP BY name")


def test_queries_that_double_are_refused(spark: Any) -> None:
    names = ["a0 AS (SELECT * FROM orders)"]
    for n in range(1, 20):
        twice = f"SELECT * FROM a{n - 1} UNION ALL SELECT * FROM a{n - 1}"  # noqa: S608
        names.append(f"a{n} AS ({twice})")

    with pytest.raises(ConfigError, match="more than 100 times"):
        check(spark, f"WITH {', '.join(names)} SELECT * FROM a19")  # noqa: S608


def test_queries_that_are_nested_without_end_are_refused(spark: Any) -> None:
    with pytest.raises(ConfigError, match="nested deeper"):
        check(spark, f"SELECT {'upper(' * 120}name{')' * 120} FROM orders")  # noqa: S608
