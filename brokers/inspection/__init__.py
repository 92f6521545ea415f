"""The client's side of a broker's inspection port; imports no internals of the broker."""
