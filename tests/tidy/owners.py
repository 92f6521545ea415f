"""Which module owns which job, as data: a row per job, and the mark by which its code is known.

Authentication, access rights, quotas and TLS are built into the owner of a job; a second module
that does the same job would be left out of them. A row names one module, or one package of few
modules that divide the job between them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.tidy.project import Source, is_within


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, the calls and imports that only its owner makes, and where others may make them."""

    does: str
    owner: str
    calls: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    # Modules that use the same mark for another job: module -> that job.
    except_in: tuple[tuple[str, str], ...] = ()


JOBS = (
    Job(
        does="seal a plan between its preview and its application",
        owner="gateway.access.seals",
        calls=frozenset(
            {
                "django.core.signing.TimestampSigner",
                "django.core.signing.dumps",
                "django.core.signing.loads",
            }
        ),
        except_in=(("gateway.rest.passed", "pass a caller to another worker"),),
    ),
    Job(
        does="show plans and apply them",
        owner="console.pages.plans",
        imports=frozenset({"console.plans.kinds"}),
    ),
    Job(
        does="make the clients of librdkafka, with their settings and credentials",
        owner="gateway.kafka.clients",
        calls=frozenset(
            {
                "confluent_kafka.Consumer",
                "confluent_kafka.DeserializingConsumer",
                "confluent_kafka.Producer",
                "confluent_kafka.SerializingProducer",
                "confluent_kafka.admin.AdminClient",
            }
        ),
    ),
    Job(
        does="produce records",
        owner="gateway.kafka.producer",
        calls=frozenset({"gateway.kafka.clients.make_producer"}),
    ),
    Job(
        does="read assigned partitions",
        owner="gateway.kafka.consumer",
        calls=frozenset({"gateway.kafka.clients.make_consumer"}),
        except_in=(("gateway.kafka.group_client", "read as a member of a group"),),
    ),
    Job(
        does="admit a caller to the records of topics",
        owner="gateway.kafka.readers.admission",
        calls=frozenset({"Admission", "gateway.kafka.readers.admission.Admission"}),
    ),
    Job(
        does="read spans of records for callers that were admitted",
        owner="gateway.kafka.readers.ranges",
        calls=frozenset({"gateway.kafka.consumer.Reader"}),
        except_in=(
            ("cli.consume", "read as the user of a shell, whom the brokers admit"),
            ("connectors.runtime.cluster_wire", "read as a connector, whose author was checked"),
        ),
    ),
    Job(
        does="budget the guesses of unknown callers",
        owner="gateway.rest.callers",
        calls=frozenset({"gateway.rest.strangers.Strangers"}),
    ),
    Job(
        does="tell Django REST framework who calls",
        owner="gateway.rest.authentication",
        imports=frozenset({"rest_framework.authentication"}),
    ),
    Job(
        does="count failed logins",
        owner="gateway.access.login_limits",
        imports=frozenset({"gateway.access.models.FailedLogin"}),
    ),
    Job(
        does="describe calls of programs for OpenAPI",
        owner="gateway.rest.openapi",
        imports=frozenset({"drf_spectacular"}),
    ),
    Job(
        does="open or serve an HTTP connection",
        owner="brokers.http",
        imports=frozenset({"h11", "http.client", "http.server", "urllib.request"}),
        except_in=(("connectors.sdk.exchanges", "ask servers that a guard allows"),),
    ),
    Job(
        does="send requests for which librdkafka has no call",
        owner="gateway.kafka.requests",
        calls=frozenset({"brokers.protocol.codec.codec"}),
        except_in=(("brokers", "serve requests, and store records in the same encoding"),),
    ),
    Job(
        does="read and write the index files of segments",
        owner="brokers.storage.index_file",
        calls=frozenset(
            {
                "read_entries",
                "brokers.storage.index_file.read_entries",
                "write_entries",
                "brokers.storage.index_file.write_entries",
            }
        ),
    ),
    Job(
        does="route handshakes of WebSockets",
        owner="gateway.ws.routing",
        imports=frozenset({"channels.routing.URLRouter"}),
    ),
    Job(
        does="accept and refuse WebSockets",
        owner="gateway.ws.consumers",
        imports=frozenset({"channels.consumer"}),
    ),
    Job(
        does="be the channel layer of a worker",
        owner="gateway.shared.layer",
        imports=frozenset({"channels.layers.BaseChannelLayer"}),
    ),
    Job(
        does="speak to the server that workers share",
        owner="gateway.shared.link",
        imports=frozenset({"hiredis"}),
    ),
)


def second_owners(jobs: Iterable[Job], sources: Iterable[Source]) -> list[str]:
    """Return where a module other than its owner does a job."""
    return [
        f"{source.path}:{line}: {mark} is for {job.owner}, which is to {job.does}"
        for source in sources
        for job in jobs
        if not is_within(source.dotted, job.owner)
        and not any(is_within(source.dotted, module) for module, _ in job.except_in)
        for line, mark in marks(job, source)
    ]


def marks(job: Job, source: Source) -> list[tuple[int, str]]:
    """Return the lines of a module that carry the mark of a job."""
    imported = [
        (line, name)
        for line, name in source.imports()
        if any(is_within(name, marked) for marked in job.imports)
    ]
    called = [(call.lineno, name) for name, call in source.calls() if name in job.calls]
    return imported + called
