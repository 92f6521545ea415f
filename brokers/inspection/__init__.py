"""The client's side of a broker's inspection port; knows no broker's inside."""
