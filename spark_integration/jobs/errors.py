"""Defines the errors of Spark itself, each with what to do next."""


class SparkError(Exception):
    """Spark cannot be used as requested; the message is for the user."""


class SparkMissing(SparkError):
    """Spark, or the Java that it needs, is not installed."""


class SparkNotStarted(SparkError):
    """Spark's Java process did not start; another attempt may succeed."""


class SparkRefused(SparkError):
    """A setting is wrong, or not safe."""
