"""Builds the package `pyspark_samsa`: the source and the sink for other Spark installations.

Spark looks for modules named `pyspark_…` with a `DefaultSource`. The package is the folder
`datasource` under that name, as a wheel to install and a zip for `addPyFile`. Builds are
reproducible: the same code gives the same bytes.
"""

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_integration.datasource.releases import needed

NAME: Final = "pyspark_samsa"
ROOM: Final = re.compile(r"\bspark_integration\.datasource\b")
SOURCES: Final = Path(__file__).parents[1] / "datasource"
# The package name in the imports of a checkout.
OWN_NAME: Final = "spark_integration"
OWN_ZIP: Final = "samsa-source.zip"
# The oldest date in a zip; with the current time each build would differ.
DATE: Final = (1980, 1, 1, 0, 0, 0)
MODE: Final = 0o644
DOOR: Final = '''\
"""Topics of Samsa, and of whatever speaks Kafka's protocol, as `format("samsa")`."""

from pyspark_samsa.door import DefaultSource

__all__ = ["DefaultSource"]
__version__ = "{version}"
'''
# Without a requirement: Spark comes as pyspark, pyspark-client, or with the machine.
METADATA: Final = f"""\
Metadata-Version: 2.1
Name: {NAME}
Version: {{version}}
Summary: Topics of Samsa as a source and a sink of Spark {needed()} or newer
Requires-Python: >=3.11
"""
WHEEL: Final = """\
Wheel-Version: 1.0
Generator: samsa
Root-Is-Purelib: true
Tag: py3-none-any
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The files of a release, by name."""

    wheel_name: str
    wheel: bytes
    zip_name: str
    zip: bytes


def build_package(version: str, sources: Path = SOURCES) -> Package:
    """Build wheel and zip from the sources of a checkout."""
    modules = packaged_modules(version, sources)
    return Package(
        wheel_name=f"{NAME}-{version}-py3-none-any.whl",
        wheel=zipped(modules | described(version, modules)),
        zip_name=f"{NAME}.zip",
        zip=zipped(modules),
    )


def own_zip(sources: Path = SOURCES) -> bytes:
    """Zip the folder under its own name, for our sessions on a Spark without Samsa."""
    modules = {
        f"{OWN_NAME}/{sources.name}/{path.relative_to(sources).as_posix()}": path.read_bytes()
        for path in sorted(sources.rglob("*.py"))
    }
    return zipped({f"{OWN_NAME}/__init__.py": b"", **modules})


def packaged_modules(version: str, sources: Path) -> dict[str, bytes]:
    """Return the modules of the folder under the package's name."""
    modules = {
        f"{NAME}/{path.relative_to(sources).as_posix()}": renamed(path.read_text(encoding="utf-8"))
        for path in sorted(sources.rglob("*.py"))
    }
    return modules | {f"{NAME}/__init__.py": DOOR.format(version=version).encode()}


def renamed(source: str) -> bytes:
    return ROOM.sub(NAME, source).encode()


def described(version: str, modules: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the metadata of a wheel: its description, and the checksum of each file."""
    folder = f"{NAME}-{version}.dist-info"
    told = {
        f"{folder}/METADATA": METADATA.format(version=version).encode(),
        f"{folder}/WHEEL": WHEEL.encode(),
    }
    rows = [
        f"{name},sha256={digest(data)},{len(data)}"
        for name, data in (*modules.items(), *told.items())
    ]
    record = f"{folder}/RECORD"
    return told | {record: "\n".join([*rows, f"{record},,", ""]).encode()}


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an uncompressed zip: compressors of other builds would write other bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = MODE << 16
            entry.create_system = 3  # Unix, whatever builds it
            archive.writestr(entry, data)
    return target.getvalue()
