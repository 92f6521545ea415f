"""REST version 3: administration of the cluster, as the published interface has it.

`schemas` are the fields of every body, `present` makes them of what the cluster answers, and the
views ask. Produce is bare and is not here.
"""
