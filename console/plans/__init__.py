"""The plans of the console: one page shows, applies and makes again what each kind has planned.

`kinds` is the table of kinds. Each of the other modules adapts one kind: it turns a plan into a
`Preview`, and applies it.
"""
