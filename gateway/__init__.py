"""The Django project, and the interfaces of the cluster for programs without a Kafka client."""
