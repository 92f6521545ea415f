"""`format("samsa")`: what a driver and its executors run, in pure Python.

It runs on machines without Samsa: it imports the standard library, pyspark, pyarrow with its numpy,
and codec packages only if a record needs one.
"""
