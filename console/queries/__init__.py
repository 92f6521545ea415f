"""What each page shows, as frozen values made from what the control plane knows.

No page view calls a broker: all of this is read from the database, and works with every broker
down.
"""
