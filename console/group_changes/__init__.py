"""Plans, seals and applies changes of groups from pages, exactly as they were previewed.

Groups are not metadata: their changes are calls to the brokers, which this package makes.
"""
