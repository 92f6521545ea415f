"""The clients of the matrix, one row each."""

from tests.interop.clients.aio import AioClient
from tests.interop.clients.client import Reader, Writer
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.java import JavaClient
from tests.interop.clients.kafka_python import KafkaPythonClient
from tests.interop.clients.kafkajs_client import KafkaJsClient
from tests.interop.clients.kcat import KcatClient

WRITERS: tuple[Writer, ...] = (
    ConfluentClient(),
    AioClient(),
    KafkaPythonClient(),
    KcatClient(),
    KafkaJsClient(),
    JavaClient(),
)
# kafkajs reads in a group only.
READERS: tuple[Reader, ...] = (
    ConfluentClient(),
    AioClient(),
    KafkaPythonClient(),
    KcatClient(),
    JavaClient(),
)
