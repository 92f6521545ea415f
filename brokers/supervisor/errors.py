"""Defines the errors that prevent a start; each message is one sentence that says what to do."""


class StartRefused(Exception):
    """Nothing was started, or everything was stopped again; the message is for the user."""


class NotRunning(Exception):
    """No supervisor owns the home; the message is for the user."""
