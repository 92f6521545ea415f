"""Samsa's Kafka client: topics, configs and records in and out, over confluent-kafka.

Knows no Django and no command line. Arguments and results are our own frozen values, every call has
a deadline, and every error leaves as one `KafkaFailure` that says what to do next.
"""
