"""Commands of connectors."""
