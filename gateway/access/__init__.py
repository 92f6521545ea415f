"""Who may do what, and for how long a browser stays signed in: the access rights of the product.

`operations` is the table of what can be allowed, `grants` the pure decision, `requirements` what an
address demands, `middleware` the one place that enforces it. Other rooms read through `selectors`
and write through `services`. This room knows no page and no broker.
"""
