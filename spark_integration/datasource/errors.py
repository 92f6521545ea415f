"""What sources and sinks tell users, each with what to do next."""


class SamsaError(Exception):
    """A source or a sink cannot do what it was asked for."""


class OptionRefused(SamsaError):
    """An option is missing or wrong; the message names it."""


class DataLost(SamsaError):
    """Records that should be read are not there any more."""


class CorruptBatch(SamsaError):
    """A record batch is not what it says; the message says in what."""
