"""Routes models to databases: those of the cluster, of the web, and of connectors.

A SQLite file has one writer at a time, so neither a busy web page nor the leases of connector tasks
delay changes of the cluster. On PostgreSQL all names mean one database, and every table is created
through the first of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

CLUSTER: Final = "cluster"
CONNECT: Final = "connect"
# The apps whose tables are not in the default database.
HOMES: Final[Mapping[str, str]] = MappingProxyType({"controlplane": CLUSTER, "connectors": CONNECT})


class DatabaseRouter:
    def db_for_read(self, model: type[Model], **_: object) -> str:
        return _home_of(model._meta.app_label)  # noqa: SLF001 - Django's documented door

    def db_for_write(self, model: type[Model], **_: object) -> str:
        return _home_of(model._meta.app_label)  # noqa: SLF001 - Django's documented door

    def allow_relation(self, one: Model, other: Model, **_: object) -> bool:
        labels = one._meta.app_label, other._meta.app_label  # noqa: SLF001 - as above
        return _home_of(labels[0]) == _home_of(labels[1])

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool:
        if settings.IS_ONE_DATABASE:
            return db == DEFAULT_DB_ALIAS
        return db == _home_of(app_label)


def _home_of(app_label: str) -> str:
    return HOMES.get(app_label, DEFAULT_DB_ALIAS)
