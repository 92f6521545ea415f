"""REST version 3: administration of the cluster, as in the published interface.

`schemas` declares the fields of every body, `present` builds bodies from the cluster's answers, and
the views call the cluster. Produce calls are bare and are not here.
"""
