"""Search in the records of one partition: what is asked, and the process that looks."""
