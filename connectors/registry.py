"""The available connectors: built in, entry points of packages, and in a home's `plugins`.

No name from a config is ever imported: a config's class is looked up among those found here. What
cannot be imported, or lacks a package, is listed with the reason.
"""

import importlib
import logging
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeGuard

from django.conf import settings

from connectors import home_plugins
from connectors.runtime.pools import POOLS
from connectors.sdk.configs import Definition
from connectors.sdk.connector import Connector, JobConnector, SinkConnector, SourceConnector

log: Final = logging.getLogger(__name__)
FOLDER: Final = "connectors.plugins"
ENTRY_POINTS: Final = "samsa.connectors"
# Packages of others have a few connectors each; a page lists them all.
MAX_PLUGINS: Final = 500
# The package name at the beginning of a requirement, such as "psycopg>=3.2".
PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
ENDING: Final = "Connector"
RUNNABLE: Final = (SourceConnector, SinkConnector, JobConnector)
# The prefix of a home folder's name; no package name begins like this.
HOME_PACKAGE: Final = "samsa_home_plugin_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a connector cannot run, with what to do about it."""

    reason: str
    # The extra that provides the missing package, if any.
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A plugin that failed to load: its origin, and the error."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    by_name: Mapping[str, type[Connector]]  # by name, alias, and the short forms of aliases
    classes: tuple[type[Connector], ...]
    # Foreign connectors, with their origins.
    foreign: Mapping[type[Connector], str]
    broken: tuple[Broken, ...]


def plugins() -> Mapping[str, type[Connector]]:
    """Return connectors by each name that a config may use."""
    return _found().by_name


def classes() -> tuple[type[Connector], ...]:
    """Return each connector once, sorted by name."""
    return _found().classes


def broken() -> tuple[Broken, ...]:
    return _found().broken


def find(class_name: str) -> type[Connector] | None:
    return plugins().get(class_name)


def is_foreign(plugin: type[Connector]) -> bool:
    """Return whether a connector is not built in: only workers run its code."""
    return plugin in _found().foreign


def origin_of(plugin: type[Connector]) -> str:
    """Return the origin of a connector; nothing for a built-in one."""
    return _found().foreign.get(plugin, "")


def kind_of(plugin: type[Connector]) -> str:
    return "sink" if issubclass(plugin, (SinkConnector, JobConnector)) else "source"


def is_job(plugin: type[Connector]) -> bool:
    """Return whether a connector's tasks are jobs: it has the keys of a sink, and no steps."""
    return issubclass(plugin, JobConnector)


def missing(plugin: type[Connector]) -> Missing | None:
    """Return why a connector cannot run here; checked on each call, since packages come and go."""
    absent = [needed for needed in plugin.modules if not _is_here(needed)]
    if not absent:
        return None
    line = (
        f"./samsa extras install {plugin.extra}"
        if plugin.extra
        else f"pip install {' '.join(absent)}"
    )
    return Missing(
        reason=f"{plugin.name} needs packages that are not installed"
        f" ({', '.join(absent)}): run `{line}`",
        extra=plugin.extra,
    )


def forget() -> None:
    """Discard the cache; for tests, and after an installation."""
    _found.cache_clear()


@cache
def _found() -> Found:
    by_name: dict[str, type[Connector]] = {}
    classes: dict[str, type[Connector]] = {}
    foreign: dict[type[Connector], str] = {}
    failed: list[Broken] = []
    # Built-in connectors first: no package can take their names.
    for origin, found in (*_of_folders(), *_of_entry_points(), *_of_home()):
        if isinstance(found, Broken):
            failed.append(found)
            log.error("plugin.not_read origin=%s reason=%s", origin, found.reason)
            continue
        if found.name in classes or len(classes) >= MAX_PLUGINS:
            failed.append(Broken(origin=origin, reason=f"there is another {found.name}"))
            continue
        classes[found.name] = found
        if not origin.startswith(FOLDER):
            foreign[found] = origin
        for name in names_of(found):
            by_name.setdefault(name, found)
    return Found(
        by_name=MappingProxyType(by_name),
        classes=tuple(classes[name] for name in sorted(classes)),
        foreign=MappingProxyType(foreign),
        broken=tuple(failed),
    )


def names_of(plugin: type[Connector]) -> list[str]:
    """Return the names of a connector: its own, its aliases, and these without package and suffix.

    Kafka Connect accepts FileStreamSource for ….file.FileStreamSourceConnector.
    """
    names = [plugin.name, *plugin.aliases]
    for alias in plugin.aliases:
        simple = alias.rpartition(".")[2]
        names += [simple, simple.removesuffix(ENDING)]
    return list(dict.fromkeys(names))


def _of_folders() -> Iterator[tuple[str, type[Connector] | Broken]]:
    spec = util.find_spec(FOLDER)
    paths = [] if spec is None else list(spec.submodule_search_locations or ())
    for module in sorted(pkgutil.iter_modules(paths), key=lambda module: module.name):
        origin = f"{FOLDER}.{module.name}"
        if not module.ispkg:
            continue
        try:
            package = importlib.import_module(f"connectors.plugins.{module.name}")
            listed = tuple(package.CONNECTORS)
        # A plugin that fails to load must not hide the others.
        except Exception as error:  # noqa: BLE001
            yield origin, _broken(origin, error)
            continue
        for one in listed:
            yield origin, _checked(origin, one)


def _of_entry_points() -> Iterator[tuple[str, type[Connector] | Broken]]:
    for point in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        origin = f"{point.dist.name if point.dist else '?'}:{point.name}"
        try:
            loaded = point.load()
        # As above; and a module may call sys.exit when it is imported.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            yield origin, _broken(origin, error)
            continue
        yield origin, _checked(origin, loaded)


def _of_home() -> Iterator[tuple[str, type[Connector] | Broken]]:
    for plugin in home_plugins.found(settings.SAMSA_HOME):
        if plugin.refusal:
            yield plugin.origin, Broken(origin=plugin.origin, reason=plugin.refusal)
            continue
        try:
            listed = tuple(_load(plugin.package))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            yield plugin.origin, _broken(plugin.origin, error)
            continue
        for one in listed:
            yield plugin.origin, _checked(plugin.origin, one)


def _load(package: Path) -> Iterable[object]:
    """Load a folder as a package; its modules import each other with a leading dot."""
    name = f"{HOME_PACKAGE}{package.name}"
    spec = util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None, "the path is a Python file"
    assert spec.loader is not None, "a file has a loader"
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    with ExitStack() as failing:
        # The caller reports the exception; remove the half-imported package.
        failing.callback(sys.modules.pop, name)
        spec.loader.exec_module(module)
        found: Iterable[object] = module.CONNECTORS
        failing.pop_all()
    return found


def _is_connector(found: object) -> TypeGuard[type[Connector]]:
    is_one = isinstance(found, type) and issubclass(found, RUNNABLE)
    return is_one and bool(getattr(found, "name", ""))


def _checked(origin: str, found: object) -> type[Connector] | Broken:
    if not _is_connector(found):
        what = getattr(found, "__name__", type(found).__name__)
        reason = f"{what} is not a SourceConnector, SinkConnector or JobConnector with a name"
        return Broken(origin=origin, reason=reason)
    if found.pool not in POOLS:
        known = ", ".join(repr(pool) for pool in POOLS)
        return Broken(origin=origin, reason=f"its pool is {found.pool!r}: use one of {known}")
    try:
        definition: object = found.definition()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its pages would fail instead
        return _broken(origin, error)
    if not isinstance(definition, Definition):
        kind = type(definition).__name__
        return Broken(
            origin=origin, reason=f"{found.__name__}.definition() is a {kind}, no Definition"
        )
    return found


def _broken(origin: str, error: BaseException) -> Broken:
    return Broken(origin=origin, reason=f"{type(error).__name__}: {error}"[:1000])


def _is_here(needed: str) -> bool:
    name = PACKAGE.match(needed)
    try:
        return bool(name and metadata.version(name[0]))
    except metadata.PackageNotFoundError:
        return False
