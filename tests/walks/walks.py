"""The requests whose walks are counted.

Each request is made in one process, with nothing cold. A walk begins where bytes or a scope are
handed to the project and ends with the answer; what runs by a timer meanwhile is no part of it.
"""

import tempfile
from pathlib import Path

from tests.fakes.broker_thread import broker_beside
from tests.walks import broker_walks, web_walks
from tests.walks.tracer import Tracer, Walk


def all_walks() -> dict[str, Walk]:
    tracer = Tracer()
    topics = {broker_walks.TOPIC: 1}
    with tempfile.TemporaryDirectory(prefix="samsa-walks-") as name, tracer.installed():
        folders = [Path(name, each) for each in ("broker", "rest", "page")]
        for folder in folders:
            folder.mkdir()
        walks = {}
        with broker_beside(folders[0], topics=topics, defaults=broker_walks.SOON) as broker:
            walks["Produce"] = broker_walks.produce(tracer, broker)
            walks["JoinGroup"] = broker_walks.join_group(tracer, broker)
            walks["REST produce"] = web_walks.rest_produce(tracer, folders[1], broker)
        # Without the broker, whose timers have no part in it.
        walks["console page"] = web_walks.console_page(tracer, folders[2])
        return walks
