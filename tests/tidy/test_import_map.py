"""The import map, executed."""

import pytest

from tests.tidy.import_map import circle, violations
from tests.tidy.project import Source, product


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
