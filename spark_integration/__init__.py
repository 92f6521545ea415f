"""Samsa and Spark: a source and a sink in pure PySpark, and the sessions that run them."""
