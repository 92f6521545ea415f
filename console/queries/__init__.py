"""Reads what each page shows from the control plane, as frozen values.

No page view calls a broker: all data comes from the database, so pages work with every broker down.
"""
