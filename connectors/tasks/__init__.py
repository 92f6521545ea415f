"""Runs slices with leases and rows, Celery's workers, and the beat that plans.

`connectors.runtime.planner` and the slices make all decisions.
"""
