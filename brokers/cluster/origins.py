"""Where a request for a change came from, as the audit keeps it.

Pure. Names that a client gives itself are kept as it gave them, and prove nothing.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from brokers.cluster.proposals import Proposal


class Via(StrEnum):
    WIRE = "wire"  # Kafka's protocol; `./samsa` is a client of it
    BROWSER = "browser"
    REST = "rest"  # a program with a token or a password
    HOST = "host"  # a command on the host itself, `./samsa manage ...`


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who asks, and from where. The session is a digest, which tells two sessions apart."""

    actor: str  # a principal: "User:alice"
    client_id: str = ""
    address: str = ""
    session: str = ""


def via_of(proposal: Proposal) -> Via:
    if proposal.broker_id >= 0:
        return Via.WIRE
    return Via.BROWSER if proposal.session else Via.HOST


def origin_of(proposal: Proposal) -> Origin:
    return Origin(
        actor=proposal.actor,
        client_id=proposal.client_id,
        address=proposal.address,
        session=proposal.session,
    )


def from_origin(proposal: Proposal, origin: Origin) -> Proposal:
    """Return a proposal as one that this origin makes."""
    return replace(
        proposal,
        actor=origin.actor,
        client_id=origin.client_id,
        address=origin.address,
        session=origin.session,
    )
