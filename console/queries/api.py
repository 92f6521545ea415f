"""Reads the frame of the page about programmatic interfaces; a browser fetches the description."""

from dataclasses import dataclass

from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from gateway.access.grants import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    frame: Frame


def api(cluster_id: str | None, rights: Rights) -> Reading[Api]:
    return last_good.read(
        ("api", cluster_id, rights.grants),
        lambda: Api(frame=frame(cluster_id, rights)),
        is_empty=lambda data: data.frame.shown is None,
    )
