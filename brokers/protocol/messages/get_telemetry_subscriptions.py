"""GetTelemetrySubscriptions: return the metrics that a client pushes, and the interval.
API 71, version 0, flexible from 0.

Advertised only where something receives the metrics, since clients begin to push at once.

Versions:
  0  (KIP-714)
"""

from brokers.protocol.schema import INT8, STRING, Message, array, boolean, int16, int32, uuid


class GetTelemetrySubscriptionsRequest(Message, key=71, versions=(0, 0), flexible=0):
    client_instance_id: bytes = uuid("All zero at first: the broker then makes one up.")


class GetTelemetrySubscriptionsResponse(Message, key=71, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(INT8)
    push_interval_ms: int = int32("Milliseconds between pushes.")
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean("True for differences since the last push, false for totals.")
    requested_metrics: list[str] = array(
        STRING, "Prefixes of names; one empty string for all, no element for none."
    )
