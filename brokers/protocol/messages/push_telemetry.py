"""PushTelemetry: take in metrics that a client pushes.
API 72, version 0, flexible from 0.

Versions:
  0  (KIP-714)
"""

from brokers.protocol.schema import Message, blob, boolean, int8, int16, int32, uuid


class PushTelemetryRequest(Message, key=72, versions=(0, 0), flexible=0):
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean("The last push of this client.")
    compression_type: int = int8("Numbered as in record batches; 0 for none.")
    metrics: bytes = blob("OTLP metrics data, compressed as said.")


class PushTelemetryResponse(Message, key=72, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
