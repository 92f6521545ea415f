"""`./samsa tokens` as scripts use it: what is printed where, and with which exit code."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from cli.tokens import SCOPES
from tests.cli.lifecycle import samsa
from tests.cluster import ROOT
from tests.database import CLUSTER_ID, FILES, migrated, pointed_at, project_home
from tests.fakes.broker_thread import broker_beside

project_home()

from gateway.access.management.commands.tokens import Command as TokensCommand  # noqa: E402
from gateway.access.token_scopes import NAMED  # noqa: E402
from tests.fakes.whole_door import WholeDoor, whole_door  # noqa: E402

pytestmark = pytest.mark.slow

# What is said of it is five; a machine that does much else takes longer.
REVOKED_S: Final = 10


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home as its first start leaves it."""
    folder, source = tmp_path / "home", migrated()
    folder.mkdir(mode=0o700)
    shutil.copytree(project_home() / "secrets", folder / "secrets")
    shutil.copyfile(project_home() / "cluster-id", folder / "cluster-id")
    for name in FILES.values():
        shutil.copyfile(source / name, folder / name)
    with pointed_at({alias: {"NAME": folder / name} for alias, name in FILES.items()}):
        yield folder


def tokens(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    verb, *others = arguments
    return subprocess.run(
        [sys.executable, "-m", "cli", "tokens", verb, "--home", str(home), *others],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "SAMSA_HOME"},
        capture_output=True,
        text=True,
        check=False,
    )


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(home: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command that a process becomes, in this process, which saves its start."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        code: int | str | None = 0
        capsys.readouterr()
        try:
            TokensCommand().run_from_argv(["manage.py", "tokens", *arguments])
        except SystemExit as end:
            code = end.code
        output, errors = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(code or 0), output, errors)

    return run


def test_a_token_may_be_for_each_scope(home: Path, command: Command) -> None:
    names = [f"--{scope.value}=shop*" for scope in NAMED]

    made = tokens(home, "create", "all", *names)

    assert made.returncode == 0, made.stderr
    assert list(SCOPES) == [scope.value for scope in NAMED]
    row = command("list").stdout
    assert "use-secrets on secret shop*" in row
    assert "create-connectors on connector shop*" in row


def test_a_token_is_all_that_is_printed_and_is_shown_in_no_list(home: Path) -> None:
    made = tokens(home, "create", "ci", "--read=orders*", "--group", "app", "--expires", "30d")
    listed = tokens(home, "list")
    revoked = tokens(home, "revoke", "ci")
    after = tokens(home, "list")

    token = made.stdout.removesuffix("\n")
    assert (made.returncode, made.stderr) == (0, "")
    assert token.startswith("samsa_")
    assert token.isascii()
    assert len(token.split()) == 1
    [row] = listed.stdout.splitlines()
    assert token not in row
    assert row.split("\t")[:2] == ["ci", "valid"]
    assert "read-payloads on topic orders* of all clusters" in row
    assert "expires never" not in row
    assert (revoked.returncode, revoked.stdout) == (0, "")
    assert "ci is revoked" in revoked.stderr
    assert after.stdout.split("\t")[:2] == ["ci", "revoked"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "x"), "a token needs at least one right: give one of --read"),
        (("create", "a b", "--admin"), "is not a token name"),
        (("create", "x", "--read=a*b"), "“a*b” is not a pattern"),
        (("create", "x", "--read="), "the pattern has 0 characters"),
        (("create", "x", "--write=a\nb"), "is not a pattern"),
        (("create", "x", "--admin", "--expires=5x"), "--expires is “5x”: give a number and"),
        (("create", "x", "--admin", "--expires=0s"), "a token has to expire in the future"),
        (("create", "x", "--admin", "--expires=99999999d"), "a token has to expire in the future"),
        (("revoke", "nobody"), "there is no token “nobody”: `./samsa tokens list` shows all"),
    ],
)
def test_what_cannot_be_is_refused_with_nothing_on_standard_output(
    command: Command, arguments: tuple[str, ...], said: str
) -> None:
    refused = command(*arguments)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert said in refused.stderr


def test_a_refusal_is_the_refusal_of_the_process(home: Path) -> None:
    refused = tokens(home, "create", "a b", "--admin")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is not a token name" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_name_is_given_once_and_ends_once(command: Command) -> None:
    assert command("create", "ci", "--admin").returncode == 0

    again = command("create", "ci", "--admin")
    ended = [command("revoke", "ci") for _ in range(2)]

    assert "there is, or was, a token “ci”" in again.stderr
    assert [done.returncode for done in ended] == [0, 1]
    assert "ci is revoked already" in ended[1].stderr


def test_names_that_look_like_options_are_names(home: Path, command: Command) -> None:
    made = tokens(home, "create", "odd", "--read=-x", "--group=--admin", "--write=ä*")

    assert made.returncode == 0, made.stderr
    row = command("list").stdout
    assert "read-payloads on topic -x" in row
    assert "view on group --admin" in row
    assert "produce on topic ä*" in row


def test_a_home_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    refused = samsa("tokens", "list", "--home", tmp_path / "typo")

    assert refused.exit_code == 1
    assert "does not exist" in refused.stderr
    assert not (tmp_path / "typo").exists()


def test_a_home_without_tables_is_told_to_be_started(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)

    refused = tokens(tmp_path / "home", "list")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "start the home with `./samsa up`" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.fixture
def door(home: Path, tmp_path: Path) -> Iterator[WholeDoor]:
    with (
        broker_beside(tmp_path, topics={"orders": 1}) as broker,
        whole_door(home, broker.bootstrap, cluster=CLUSTER_ID) as found,
    ):
        yield found


@pytest.mark.alone
def test_a_revoked_token_is_refused_and_ends_its_stream(
    home: Path, command: Command, door: WholeDoor
) -> None:
    door.token = command("create", "ci", "--read=orders").stdout.strip()
    head = (
        "GET /rest/v1/topics/orders/records HTTP/1.1\r\nHost: localhost\r\n"
        f"Accept: application/x-ndjson\r\nAuthorization: Bearer {door.token}\r\n\r\n"
    )
    assert door.ask("GET", "/rest/topics/orders").status == 200

    with socket.create_connection(("127.0.0.1", door.port), 60) as stream:
        stream.sendall(head.encode())
        begun = stream.recv(65_536)
        assert tokens(home, "revoke", "ci").returncode == 0
        at = time.monotonic()
        while door.ask("GET", "/rest/topics/orders").status == 200:
            assert time.monotonic() - at < REVOKED_S
        told = begun
        while not told.endswith(b"0\r\n\r\n"):
            piece = stream.recv(65_536)
            assert piece, told
            told += piece
        took_s = time.monotonic() - at

    assert door.ask("GET", "/rest/topics/orders").code == (401, 40101)
    assert b"200 OK" in begun
    assert took_s < REVOKED_S


def test_an_expired_token_is_refused(command: Command, door: WholeDoor) -> None:
    door.token = command("create", "ci", "--read=orders", "--expires=1s").stdout.strip()

    until = time.monotonic() + REVOKED_S
    while (told := door.ask("GET", "/rest/topics/orders")).status == 200:
        assert time.monotonic() < until

    assert told.code == (401, 40101)
    assert "expired" in told.json()["message"]
    assert "\texpired\t" in command("list").stdout
