"""Consumer groups: who is a member, who reads which partition, and how far a group has come.

Pure: requests and the time come in, records and answers go out. Knows no log and no connection.
"""
