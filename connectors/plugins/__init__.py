"""The connectors that come with Samsa: one folder each, which knows the sdk and nothing else."""
