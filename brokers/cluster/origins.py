"""The origin of a request for a change, as the audit keeps it.

Pure. Names that a client gives itself are kept unverified, and prove nothing.
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
    """The requester and its address. The session is a digest, to tell two sessions apart."""

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
    """Return a proposal with this origin."""
    return replace(
        proposal,
        actor=origin.actor,
        client_id=origin.client_id,
        address=origin.address,
        session=origin.session,
    )
