"""What the cluster is and should be, as rows: the one place that decides, and the agent beside it.

Django's side of the house. No broker imports anything of it: brokers speak to the agent of their
host. Rows change through `services` only, and are read through `selectors`.
"""
