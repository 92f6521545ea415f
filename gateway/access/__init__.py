"""Access rights: decides who may do what, and how long a browser stays signed in.

`operations` is the table of operations, `grants` the pure decision, `requirements` what a view
demands, `middleware` the one place that enforces it. Other packages read through `selectors` and
write through `services`. This package knows no page and no broker.
"""
