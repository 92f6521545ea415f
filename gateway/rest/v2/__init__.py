"""REST version 2: what is looked up. Records and consumers are bare, in rooms of their own."""
