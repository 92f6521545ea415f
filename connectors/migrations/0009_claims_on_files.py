"""Claims on files for connectors that were written before files had rights.

They rest upon the author of the claims on topics, who wrote the config last. Rows without claims
have no known author and stay as they are.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar, Final

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from connectors.sdk.errors import ConfigError
from connectors.sdk.home_files import pattern_of

READ, WRITE = "read-files", "write-files"
OF_TOPICS: Final = ("produce", "read-payloads")
# By connector and key: the operation, and whether a path is a folder.
PATHS: Final = {
    "samsa.file.source": {"file": (READ, False)},
    "samsa.file.sink": {"file": (WRITE, False)},
    "samsa.spark.sink": {"table.path": (WRITE, True)},
    "samsa.spark.sql": {"table.path": (WRITE, True), "tables": (READ, True)},
}


def claim_files(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    rows = apps.get_model("connectors", "Connector").objects.using(schema_editor.connection.alias)
    for row in rows.filter(plugin__in=PATHS, claims__isnull=False):
        claims = row.claims or []
        author = next((one for one in claims if one.get("operation") in OF_TOPICS), None)
        if author is None:
            continue
        for operation, pattern in _needs(row.plugin, row.config):
            claims.append({**author, "operation": operation, "pattern": pattern})
        row.claims = claims
        row.save(update_fields=["claims"])


def _needs(plugin: str, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, (operation, is_folder) in PATHS[plugin].items():
        value = config.get(key) or ""
        if not isinstance(value, str) or "${" in value:
            yield operation, "*"
            continue
        for part in value.split(",") if key == "tables" else (value,):
            path = part.partition("=")[2] if key == "tables" else part
            # A path that is refused now fails its connector by name.
            with suppress(ConfigError):
                if path.strip():
                    yield operation, pattern_of(path.strip(), is_folder=is_folder)


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0008_reports_of_workers"),
    ]

    operations: ClassVar = [
        migrations.RunPython(claim_files, migrations.RunPython.noop),
    ]
