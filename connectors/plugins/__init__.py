"""The connectors that come with Samsa: one folder each, which uses only the sdk."""
