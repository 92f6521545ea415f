"""REST version 2: lookups. Records and consumers are bare calls, in packages of their own."""
