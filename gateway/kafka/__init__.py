"""The house's Kafka client: topics, configs, records in and out, over confluent-kafka.

Knows no Django and no command line. What goes in and comes out are frozen values of our own, every
call has a deadline, and whatever fails leaves as one `KafkaFailure` that says what to do next.
"""
