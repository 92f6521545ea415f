"""Which connectors are found, and what is said of those that are not."""

from collections.abc import Iterator

import pytest

from connectors import registry
from connectors.plugins.datagen.connector import Datagen


@pytest.fixture(autouse=True)
def looked_at_anew() -> Iterator[None]:
    registry.forget()
    yield
    registry.forget()


class Point:
    """An entry point of a package, as `importlib.metadata` gives them."""

    dist = None

    def __init__(self, name: str, loaded: object) -> None:
        self.name = name
        self._loaded = loaded

    def load(self) -> object:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def with_points(monkeypatch: pytest.MonkeyPatch, *points: Point) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: list(points))


def test_connectors_are_found_in_their_folders_by_name() -> None:
    found = registry.find("samsa.datagen")

    assert found is not None
    assert registry.kind_of(found) == "source"
    assert not registry.is_foreign(found)
    assert registry.missing(found) is None
    assert registry.broken() == ()


@pytest.mark.parametrize("name", ["os.system", "", "connectors.plugins.datagen", "builtins.eval"])
def test_a_name_that_is_no_connectors_is_never_imported(name: str) -> None:
    assert registry.find(name) is None


def test_an_alias_is_found_in_the_short_forms_of_kafka_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Lines(Datagen):
        name = "their.lines"
        aliases = ("org.example.LinesConnector",)

    with_points(monkeypatch, Point("lines", Lines))

    for name in ("their.lines", "org.example.LinesConnector", "LinesConnector", "Lines"):
        assert registry.find(name) is Lines
    assert registry.is_foreign(Lines)


def test_what_cannot_be_read_is_listed_with_its_reason_and_hides_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Impostor(Datagen):
        name = "samsa.datagen"

    class Swimmer(Datagen):
        name = "their.swimmer"
        pool = "deep"

    failing = Point("a", ImportError("no driver"))
    with_points(monkeypatch, failing, Point("b", 5), Point("c", Impostor), Point("d", Swimmer))

    assert [(one.origin, one.reason) for one in registry.broken()] == [
        ("?:a", "ImportError: no driver"),
        ("?:b", "int is not a SourceConnector, SinkConnector or JobConnector with a name"),
        ("?:c", "there is another samsa.datagen"),
        ("?:d", "its pool is 'deep': use one of '', 'spark'"),
    ]
    assert registry.find("samsa.datagen") is not Impostor


def test_a_connector_without_its_extra_says_how_to_install_it() -> None:
    class Needy(Datagen):
        name = "samsa.needy"
        extra = "needy"
        modules = ("click>=8", "surely-not-there>=1")

    missing = registry.missing(Needy)

    assert missing is not None
    assert missing.reason == (
        "samsa.needy needs packages that are not installed (surely-not-there>=1): run"
        " `./samsa extras install needy`"
    )
    assert missing.extra == "needy"
