"""Threads of the turns of SQLite, which a test must not leave behind."""

import threading


def join_waiting_threads() -> None:
    """Let the waits that nobody wants end, before the test's folder and its files are gone."""
    for thread in threading.enumerate():
        if thread.name == "sqlite turn":
            thread.join()
