"""Starts, watches and stops the processes of one home, as `./samsa up` promises.

Free of Django and of everything that the processes do: it knows their commands, how each says that
it is ready, and in which order they may go.
"""
