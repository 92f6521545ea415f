"""Errors of sources and sinks; each message says what to do next."""


class SamsaError(Exception):
    """A source or a sink cannot do what was requested."""


class OptionRefused(SamsaError):
    """An option is missing or wrong; the message names it."""


class DataLost(SamsaError):
    """Records that should be read are deleted."""


class CorruptBatch(SamsaError):
    """A record batch is inconsistent; the message says how."""
