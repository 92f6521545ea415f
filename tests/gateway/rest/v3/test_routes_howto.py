"""The lines of docs/howto/administer-over-http.md, run as they stand."""

import asyncio
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import uvicorn
from django.core.asgi import get_asgi_application

from tests.gateway.rest.asking import Api

pytestmark = pytest.mark.slow

HOWTO: Final = Path("docs/howto/administer-over-http.md")
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS: Final = 60


@pytest.fixture
def gateway(api: Api) -> Iterator[str]:
    """Serve the views; return the address."""
    config = uvicorn.Config(get_asgi_application(), port=0, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    listener = config.bind_socket()
    # A connection before the server is ready waits for it.
    listener.listen()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(SECONDS)


def test_every_line_works(gateway: str) -> None:
    blocks = BLOCK.findall(HOWTO.read_text())
    assert len(blocks) >= 6

    found = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "".join(blocks)],
        env={"PATH": "/usr/bin:/bin", "GATEWAY": gateway, "TOKEN": "t"},
        text=True,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )

    assert found.returncode == 0, f"{found.stdout}\n{found.stderr}"
    assert '"partitions_count":6' in found.stdout
    assert '"value":"compact"' in found.stdout
    assert '"kind":"KafkaConsumerGroupList"' in found.stdout
