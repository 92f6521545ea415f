"""The shell around slices: leases and rows, Celery's workers, and the beat that plans.

It decides nothing that `connectors.runtime.planner` or a slice decides.
"""
