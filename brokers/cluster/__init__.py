"""Models the actual and the intended state of the cluster. Pure: no I/O, no clock, no process."""
