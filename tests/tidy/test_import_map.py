"""The import map, executed."""

import re
from pathlib import Path

import pytest

from tests.tidy.import_map import DOORS, GUARDED, MAY_IMPORT, circle, room_of, violations
from tests.tidy.project import ROOT, Source, product


def test_every_import_follows_the_architecture_map() -> None:
    assert violations(product()) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("brokers/protocol/frames.py", "from brokers.storage import log"),
        ("brokers/protocol/frames.py", "import lz4.frame"),
        ("brokers/protocol/frames.py", "import crc32c"),
        ("brokers/storage/log.py", "import threading"),
        ("brokers/storage/log.py", "def late() -> None:\n    import asyncio"),
        ("brokers/storage/log.py", "import select"),
        ("brokers/storage/log.py", "import selectors"),
        ("brokers/storage/log.py", "import _thread"),
        ("brokers/storage/log.py", "from _thread import start_new_thread"),
        ("brokers/protocol/frames.py", "import urllib.request"),
        ("brokers/protocol/frames.py", "from urllib import request"),
        ("brokers/protocol/frames.py", "from urllib import *"),
        ("brokers/cluster/image.py", "import http.client"),
        ("brokers/cluster/image.py", "import http"),
        ("brokers/security/scram.py", "import subprocess"),
        ("brokers/storage/log.py", "import multiprocessing"),
        ("brokers/cluster/image.py", "import signal"),
        ("brokers/cluster/image.py", "import fcntl"),
        ("brokers/server/daemon.py", "import sqlite3"),
        ("brokers/server/daemon.py", "import psycopg"),
        ("brokers/protocol/frames.py", "import msgspec"),
        ("gateway/api/topics.py", "import msgspec"),
        ("brokers/cluster/image.py", "import msgspec"),
        ("brokers/cluster/image.py", "from importlib import import_module as load"),
        ("brokers/cluster/image.py", "__import__('asyncio')"),
        ("brokers/cluster/image.py", "from brokers.protocol import frames"),
        ("brokers/server/daemon.py", "from brokers.controlplane import services"),
        ("brokers/controlplane/services/topics.py", "import asyncio"),
        ("brokers/controlplane/services/topics.py", "from brokers.server import daemon"),
        ("brokers/coordination/groups/states.py", "from brokers.coordination import runtime"),
        ("gateway/api/topics.py", "from brokers.protocol import errors"),
        ("connectors/sdk/source.py", "import celery"),
        ("console/pages/topics.py", "from brokers.controlplane.models import topics"),
        ("brokers/unheard_of.py", ""),
        ("newroom/thing.py", ""),
    ],
)
def test_a_planted_violation_is_found(path: str, line: str) -> None:
    assert len(violations([Source.parse(path, line)])) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import importlib\nimportlib.import_module('brokers.storage.log')",
        "from importlib import import_module as load\nload('brokers.protocol.errors')",
        "from importlib import import_module\nimport_module(name='sqlite3')",
        "import importlib\nimportlib.import_module(f'brokers.storage.{name}')",
        "import importlib\nimportlib.import_module(f'asyncio.{name}')",
    ],
)
def test_an_import_hidden_in_a_string_is_found_even_behind_the_door(line: str) -> None:
    assert len(violations([Source.parse("brokers/protocol/apis.py", line)])) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("brokers/protocol/records/compression.py", "import lz4.frame"),
        ("brokers/cluster/image.py", "from brokers.protocol.errors import KafkaError"),
        ("brokers/storage/log.py", "from brokers.protocol.records import batch"),
        ("brokers/controlplane/agent.py", "import asyncio, django"),
        ("brokers/server/daemon.py", "from brokers.replication import replicas"),
        ("brokers/coordination/runtime.py", "from brokers.coordination.groups import shard"),
        ("gateway/api/topics.py", "from gateway.kafka import admin"),
        ("console/pages/topics.py", "from brokers.controlplane.services import topics"),
        ("brokers/security/principals.py", "import urllib.parse"),
        ("brokers/inspection/client.py", "from http import HTTPStatus"),
        ("brokers/storage/log_config.py", "from zlib import crc32"),
        ("brokers/storage/log_dir.py", "import fcntl"),
        ("brokers/cluster/link.py", "import msgspec"),
        ("brokers/supervisor/processes.py", "import subprocess, signal"),
        ("brokers/server/metrics.py", "from importlib.metadata import version"),
        ("connectors/plugins/jdbc/connector.py", "import psycopg, http.client"),
        ("gateway/urls.py", "import django.urls, celery"),
        ("bench/log.py", "import sqlite3, zlib, importlib"),
        (
            "brokers/protocol/apis.py",
            "import importlib\nimportlib.import_module(f'brokers.protocol.messages.{name}')",
        ),
    ],
)
def test_what_the_map_allows_passes(path: str, line: str) -> None:
    assert violations([Source.parse(path, line)]) == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    assert circle(product()) == ()


def test_planted_circle_is_found() -> None:
    planted = Source.parse("gateway/access/selectors.py", "from console.queries import live")

    assert {"console", "gateway.access"} <= set(circle([*product(), planted]))


def table(heading: str) -> list[list[str]]:
    """The rows below a heading of the architecture page, as the names in their cells."""
    page = Path(ROOT, "docs", "architecture.md").read_text(encoding="utf-8")
    _, found, rest = page.partition(f"{heading}\n|---")
    assert found
    lines = rest.partition("\n")[2].partition("\n\n")[0].splitlines()
    # What stands in parentheses is a word to the reader.
    return [re.sub(r"[`–]|\(.*?\)", "", line).strip("|").split("|") for line in lines]


def names(cell: str) -> set[str]:
    return {name.strip() for name in cell.split(",") if name.strip()}


def in_full(name: str) -> str:
    """The page leaves out the `brokers.` of a room."""
    return name if room_of(name) or name.startswith("tests.") else f"brokers.{name}"


def test_the_map_stands_in_the_architecture_page_row_by_row() -> None:
    shown = {
        room: ({in_full(name) for name in names(ours)}, names(guarded))
        for rooms, ours, guarded in table("| room | may import from us | guarded modules |")
        for room in names(rooms)
    }

    assert shown == {
        room: (set(ours.split()), set(guarded.split()))
        for room, (ours, guarded) in MAY_IMPORT.items()
    }


def test_what_is_guarded_stands_in_the_architecture_page_kind_by_kind() -> None:
    shown = {kind.strip(): names(members) for kind, members in table("| kind | modules |")}

    assert shown == {kind: set(members) for kind, members in GUARDED.items()}


def test_the_doors_stand_in_the_architecture_page() -> None:
    shown = {
        package: names(doors)
        for packages, doors in table("| package | its doors |")
        for package in names(packages)
    }

    assert shown == {package: set(doors) for package, doors in DOORS.items()}
