"""Management commands of connectors."""
