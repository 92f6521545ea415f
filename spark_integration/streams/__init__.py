"""Streams: transformations of a topic's records, written once, run in memory and on Spark."""
