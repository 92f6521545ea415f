"""Runs one slice of a task: converts, transforms, tolerates errors, and reads or writes Kafka.

Knows neither Django nor Celery; `ports` defines what it needs from them.
"""
