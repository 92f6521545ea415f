"""Sealed values: closed in the database, open with the keys of the file, and nowhere else."""

import json
import threading
from pathlib import Path

import pytest

from connectors.sdk.configs import MASK
from connectors.vault import CannotOpen, Opened, Place, Vault, masked

PLACE = Place(cluster="c1", connector="orders")
CONFIG = {"url": "db:5432", "password": "s3cret\N{SNOWMAN}"}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "secrets" / "connect")


def test_a_value_is_sealed_and_opens_as_it_was(vault: Vault) -> None:
    stored = vault.seal(CONFIG, {"password"}, PLACE)

    assert "s3cret" not in json.dumps(stored)
    assert masked(stored) == {"url": "db:5432", "password": MASK}
    opened = vault.open(stored, PLACE)["password"]
    assert isinstance(opened, Opened)
    assert opened.reveal() == CONFIG["password"]
    assert vault.path.stat().st_mode & 0o777 == 0o600


def test_the_same_value_never_looks_the_same(vault: Vault) -> None:
    assert vault.seal(CONFIG, {"password"}, PLACE) != vault.seal(CONFIG, {"password"}, PLACE)


@pytest.mark.parametrize(
    "elsewhere",
    [Place(cluster="c2", connector="orders"), Place(cluster="c1", connector="mine")],
)
def test_a_value_that_was_moved_to_another_connector_does_not_open(
    vault: Vault, elsewhere: Place
) -> None:
    stored = vault.seal(CONFIG, {"password"}, PLACE)

    with pytest.raises(CannotOpen, match="that of another connector"):
        vault.open(stored, elsewhere)
    with pytest.raises(CannotOpen, match="that of another connector"):
        vault.open({"passphrase": stored["password"]}, PLACE)


@pytest.mark.parametrize("change", [lambda text: text[:-4] + "AAA=", lambda text: text[:9] + "?"])
def test_a_damaged_value_says_so(vault: Vault, change: "type[str]") -> None:
    stored = vault.seal(CONFIG, {"password"}, PLACE)

    damaged = {"password": {"sealed": change(stored["password"]["sealed"])}}

    with pytest.raises(CannotOpen, match="password of orders is damaged"):
        vault.open(damaged, PLACE)


def test_a_rotation_opens_what_was_sealed_before_until_the_former_key_goes(vault: Vault) -> None:
    before = vault.seal(CONFIG, {"password"}, PLACE)
    former = vault.key_id

    vault.rotate()
    fresh = Vault(vault.path)
    anew = fresh.seal(fresh.open(before, PLACE), {"password"}, PLACE)
    vault.forget_former()

    assert Vault(vault.path).key_id != former
    assert Vault(vault.path).open(anew, PLACE)["password"] == CONFIG["password"]
    with pytest.raises(CannotOpen, match=f"key {former}, which is not in"):
        Vault(vault.path).open(before, PLACE)


def test_a_reference_is_no_secret_but_a_text_around_one_is(vault: Vault) -> None:
    config = {"a": "${secret:db}", "b": "pre${secret:db}", "c": "${nobody:x}"}

    shown = masked(vault.seal(config, config, PLACE))

    assert shown == {"a": "${secret:db}", "b": MASK, "c": MASK}


def test_processes_that_need_a_key_at_once_make_one(tmp_path: Path) -> None:
    vaults = [Vault(tmp_path / "connect") for _ in range(8)]
    found: list[str] = []
    threads = [threading.Thread(target=lambda one=one: found.append(one.key_id)) for one in vaults]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(found) == 8
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["connect"]
