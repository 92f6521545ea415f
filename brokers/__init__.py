"""The broker: wire protocol, segment logs, replication, coordination and the control plane."""
