"""What the cluster is and should be. Pure: no I/O, no clock, no process."""
