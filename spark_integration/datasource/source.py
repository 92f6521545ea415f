"""The class that Spark calls for `format("samsa")`: creates its readers and writers.

Readers and writers are imported on first use: on a Spark that is too old for them, this module
still has to load and report it.
"""

from typing import TYPE_CHECKING

import pyspark

from spark_integration.datasource.releases import is_too_old, needed

TOO_OLD = (
    f"this is Spark {pyspark.__version__}; samsa needs {needed()} or newer, whose Python sources"
    " support streams: upgrade Spark, or run the job on a newer one"
)

if TYPE_CHECKING:
    from spark_integration.datasource.stream_reader import SamsaStreamReader
    from spark_integration.datasource.writer import SamsaStreamWriter, SamsaWriter

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType
except ImportError as error:
    raise ImportError(TOO_OLD) from error

__all__ = ["DataSource", "DataSourceStreamReader", "SamsaDataSource"]


class SamsaDataSource(DataSource):
    """Topics of a cluster that speaks Kafka's protocol."""

    def __init__(self, options: dict[str, str]) -> None:
        if is_too_old(pyspark.__version__):
            raise RuntimeError(TOO_OLD)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "samsa"

    def schema(self) -> str:
        from spark_integration.datasource.columns import spark_schema  # noqa: PLC0415

        return spark_schema(has_headers=self._has_headers())

    def reader(self, schema: StructType) -> DataSourceReader:
        from spark_integration.datasource.batch_reader import SamsaBatchReader  # noqa: PLC0415
        from spark_integration.datasource.options import parse_options  # noqa: PLC0415

        self._require_own(schema)
        return SamsaBatchReader(parse_options(self.options, is_stream=False))

    def streamReader(  # noqa: N802 (Spark's name)
        self, schema: StructType
    ) -> "SamsaStreamReader":
        from spark_integration.datasource.options import parse_options  # noqa: PLC0415
        from spark_integration.datasource.stream_reader import SamsaStreamReader  # noqa: PLC0415

        self._require_own(schema)
        return SamsaStreamReader(parse_options(self.options, is_stream=True))

    def _has_headers(self) -> bool:
        from spark_integration.datasource.options import flag  # noqa: PLC0415

        given = {name.lower(): value for name, value in self.options.items()}
        return flag(given, "includeHeaders", default=False)

    def _require_own(self, schema: StructType) -> None:
        """Refuse a user's schema: the columns of a topic are fixed."""
        from spark_integration.datasource.columns import is_own_schema  # noqa: PLC0415
        from spark_integration.datasource.errors import OptionRefused  # noqa: PLC0415

        if not is_own_schema(schema.simpleString(), has_headers=self._has_headers()):
            raise OptionRefused(
                f"a schema was given ({schema.simpleString()}), but that of samsa is fixed: leave"
                " it out, and parse the columns key and value, for example with from_json"
            )

    def writer(self, schema: StructType, overwrite: bool) -> "SamsaWriter":
        from spark_integration.datasource.writer import SamsaWriter, plan_of  # noqa: PLC0415

        return SamsaWriter(plan_of(self.options, schema, overwrite=overwrite))

    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> "SamsaStreamWriter":
        from spark_integration.datasource.writer import (  # noqa: PLC0415
            SamsaStreamWriter,
            plan_of,
        )

        return SamsaStreamWriter(plan_of(self.options, schema, overwrite=overwrite))
