"""The Django project, and the way into the cluster for applications without a Kafka client."""
