"""Starts, watches and stops the processes of one home, as `./samsa up` promises.

Independent of Django and of the work of the processes: it knows their commands, how each reports
that it is ready, and the order in which they stop.
"""
