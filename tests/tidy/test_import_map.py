"""The import map, executed."""

from pathlib import Path

import pytest

from tests.tidy.import_map import MAY_IMPORT, violations
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
    ],
)
def test_what_the_map_allows_passes(path: str, line: str) -> None:
    assert violations([Source.parse(path, line)]) == []


def test_the_map_stands_in_the_architecture_page_row_by_row() -> None:
    page = Path(ROOT, "docs", "architecture.md").read_text(encoding="utf-8")

    missing = [room for room in MAY_IMPORT if f"`{room}`" not in page]

    assert missing == []
