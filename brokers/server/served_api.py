"""Lets a handler module declare the versions in which its API is served.

The rows of `protocol.apis` say which versions have a codec; a release may serve fewer, and may
advertise more than it serves if clients draw conclusions from that.
"""

from dataclasses import dataclass, replace

from brokers.protocol.apis import APIS, Api


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """`versions` and `advertised` are those of the API's row if they are not given.

    `waits`: the handler may wait for the cluster's metadata, and so for the agent;
    `counts_errors`: it counts responses with errors itself, since they may not be searched.
    """

    key: int
    versions: tuple[int, int] | None = None
    advertised: tuple[int, int] | None = None
    waits: bool = False
    counts_errors: bool = False

    def api(self) -> Api:
        """The row that a listener uses."""
        row = APIS[self.key]
        low, high = self.versions or row.versions
        announced = self.advertised or (
            row.advertised[0] if self.versions is None else low,
            high,
        )
        assert row.versions[0] <= low <= high <= row.versions[1], f"{row.name} {low}-{high}"
        assert announced[1] == high, f"{row.name} announces {announced} and serves up to {high}"
        return replace(
            row,
            versions=(low, high),
            advertised_from=announced[0] if announced[0] != low else None,
        )
