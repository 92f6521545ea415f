"""What authors of connectors see: no Django, no Celery, no Kafka client.

`connector` has what to subclass, `configs` how to say what can be configured, `records` and
`schemas` what is passed, `errors` how to say what went wrong.
"""
