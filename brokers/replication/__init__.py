"""The partitions that a broker has: who leads them, how far readers may see, and who waits."""
