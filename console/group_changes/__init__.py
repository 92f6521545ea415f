"""Changes of groups from pages: planned, shown, sealed, and applied as they were shown.

Groups are no metadata: a change of one is a call to the brokers, so this room talks to them.
"""
