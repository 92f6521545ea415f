"""The data source class of the package, which carries the package's zip if it came from one.

Spark passes a zip of `addPyFile` or `addArtifacts` to all Python processes that it starts, except
to the reader of a stream, whose folder for it is empty. So this class is pickled by value together
with its zip. Everything else in the package is imported.
"""

import sys
from typing import TYPE_CHECKING, ClassVar, NoReturn
from zipimport import zipimporter

from pyspark import cloudpickle

from spark_integration.datasource.source import DataSource, DataSourceStreamReader

UNSENT = (
    "the Python processes of this session lack the package of format samsa: send its zip"
    " (addPyFile, or addArtifacts with pyfile=True) before you register the source, or install the"
    " wheel there"
)

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
    )
    from pyspark.sql.types import StructType

    from spark_integration.datasource.source import SamsaDataSource


def own_code() -> bytes | None:
    """Return the zip that this module was imported from; None if it is in a folder."""
    loader: object = __spec__.loader
    if not isinstance(loader, zipimporter):
        return None
    with open(loader.archive, "rb") as file:  # noqa: PTH123 (short, since it is pickled)
        return file.read()


class RefusedStream(DataSourceStreamReader):
    """The reader of a stream that cannot begin; Spark shows its error last."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def initialOffset(self) -> NoReturn:  # noqa: N802 (Spark's name)
        raise self._error

    def latestOffset(self, *_: object) -> NoReturn:  # noqa: N802
        raise self._error

    def partitions(self, *_: object) -> NoReturn:
        raise self._error

    def read(self, *_: object) -> NoReturn:
        raise self._error


class DefaultSource(DataSource):
    """Topics of a cluster that speaks Kafka's protocol."""

    code: ClassVar[bytes | None] = own_code()

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Raises an error if Spark is too old.
        self.source()

    @classmethod
    def name(cls) -> str:
        return "samsa"

    def schema(self) -> str:
        return self.source().schema()

    def reader(self, schema: "StructType") -> "DataSourceReader":
        return self.source().reader(schema)

    def streamReader(  # noqa: N802 (Spark's name)
        self, schema: "StructType"
    ) -> "DataSourceStreamReader":
        try:
            return self.source().streamReader(schema)
        # Spark would put an error of its own behind this one, which says what to do.
        except Exception as error:  # noqa: BLE001
            return RefusedStream(error)

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceArrowWriter":
        return self.source().writer(schema, overwrite)

    def streamWriter(  # noqa: N802
        self, schema: "StructType", overwrite: bool
    ) -> "DataSourceStreamArrowWriter":
        return self.source().streamWriter(schema, overwrite)

    def source(self) -> "SamsaDataSource":
        """Return the source itself, from the carried zip if the package is not installed."""
        # Imported here: the class runs in processes without this module.
        import atexit  # noqa: PLC0415
        import shutil  # noqa: PLC0415
        import sys  # noqa: PLC0415
        import tempfile  # noqa: PLC0415

        try:
            from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415
        except ModuleNotFoundError:
            if self.code is None:
                raise ModuleNotFoundError(UNSENT) from None
            folder = tempfile.mkdtemp(prefix="samsa-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            with open(f"{folder}/samsa.zip", "wb") as file:  # noqa: PTH123
                file.write(self.code)
            sys.path.append(f"{folder}/samsa.zip")
            from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415
        return SamsaDataSource(self.options)


cloudpickle.register_pickle_by_value(sys.modules[__name__])
