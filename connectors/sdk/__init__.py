"""The interface for authors of connectors: without Django, Celery and Kafka client.

`connector` has the base classes, `configs` the definition of keys, `records` and `schemas` the
data, and `errors` the exceptions.
"""
