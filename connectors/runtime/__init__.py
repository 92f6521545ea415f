"""Runs one slice of a task: converts, transforms, tolerates errors, and reads or writes Kafka.

Knows neither Django nor Celery: what it needs of them are the ports of `ports`.
"""
