"""A program whose Spark runs out of memory, on a thread of a query and then in a task.

It prints what is said of each as a line of JSON; the second has another session than the first.
"""

import json
import os
import sys

from connectors.plugins.spark import engine
from connectors.plugins.spark.tries import Tries
from connectors.sdk.errors import ConnectorError
from spark_integration.jobs.session import close_session

# More than fits into the heap, in rows that come to the driver, and as one value of a row.
ROWS = 100_000
ON_THE_DRIVER = ("id", "repeat('x', 8000) AS x")
LARGE = "array_join(transform(sequence(1, 400), x -> repeat('x', 1000000)), '')"


def tell(said: str) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")


def main(home: str) -> None:
    os.environ |= {"SAMSA_HOME": home, "SAMSA_SPARK": "local[1]", "SAMSA_SPARK_MEMORY": "480m"}
    try:
        with engine.batch(Tries("test", 0)):
            engine.spark().range(ROWS).selectExpr(*ON_THE_DRIVER).orderBy("x").collect()
    except ConnectorError as error:
        tell(f"{type(error).__name__}: {error}")
    try:
        with engine.batch(Tries("test", 0)):
            tell(f"rows: {engine.spark().range(3).count()}")
            engine.spark().range(1).selectExpr(f"length({LARGE}) AS n").collect()
    except ConnectorError as error:
        tell(f"{type(error).__name__}: {error}")
    close_session()


if __name__ == "__main__":
    main(sys.argv[1])
