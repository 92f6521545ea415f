"""Writes the state of the cluster; no other code writes rows of this app.

Every service takes keywords, is one transaction, and returns the row or the outcome.
"""

from brokers.controlplane.services.access_audit import (
    AccessChange,
    AccessChangeKind,
    ConnectorChangeKind,
    ExtraChangeKind,
    note_access_change,
)
from brokers.controlplane.services.brokers import fence_broker, register_broker, unfence_broker
from brokers.controlplane.services.cluster_secrets import RotationRefused, rotate_secret
from brokers.controlplane.services.clusters import ensure_cluster, prove_writable, start_agent
from brokers.controlplane.services.group_audit import (
    BegunSince,
    GroupChange,
    GroupChangeKind,
    note_begun,
    note_outcome,
    note_refused,
)
from brokers.controlplane.services.orders import (
    OrderKind,
    ask_order,
    end_order,
    give_up_taken,
    take_orders,
    write_ends,
    write_holds,
)
from brokers.controlplane.services.plans import apply_plan, preview, read_plan, write_plan
from brokers.controlplane.services.proposals import propose
from brokers.controlplane.services.transactions import KEPT_CHANGES

__all__ = [
    "KEPT_CHANGES",
    "AccessChange",
    "AccessChangeKind",
    "BegunSince",
    "ConnectorChangeKind",
    "ExtraChangeKind",
    "GroupChange",
    "GroupChangeKind",
    "OrderKind",
    "RotationRefused",
    "apply_plan",
    "ask_order",
    "end_order",
    "ensure_cluster",
    "fence_broker",
    "give_up_taken",
    "note_access_change",
    "note_begun",
    "note_outcome",
    "note_refused",
    "preview",
    "propose",
    "prove_writable",
    "read_plan",
    "register_broker",
    "rotate_secret",
    "start_agent",
    "take_orders",
    "unfence_broker",
    "write_ends",
    "write_holds",
    "write_plan",
]
