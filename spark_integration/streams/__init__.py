"""Streams: what to do with the records of a topic, written once and run in memory and on Spark."""
