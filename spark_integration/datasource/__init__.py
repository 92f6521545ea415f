"""`format("samsa")`: what a driver and its executors run, in pure Python.

All of it travels to machines that have no Samsa: it imports the standard library, pyspark, pyarrow
with the numpy beneath it, and the packages of codecs where a record asks for one.
"""
