"""The table of owners, executed."""

from tests.tidy.owners import JOBS, Job, marks, second_owners
from tests.tidy.project import PRODUCT, Source, is_within, product

SEAL = Job(
    does="seal what a browser keeps",
    owner="gateway.seals",
    calls=frozenset({"hmac.digest"}),
    imports=frozenset({"django.core.signing"}),
    except_in=(("brokers.keys", "derive keys"),),
)


def test_every_job_is_done_by_its_owner_only() -> None:
    assert second_owners(JOBS, [source for source in product() if source.top in PRODUCT]) == []


def test_every_owner_and_every_exception_does_carry_the_mark() -> None:
    """A row whose module is gone, or does the job by other means, holds nothing any more."""
    sources = {source.dotted: source for source in product()}
    named = [(job, job.owner) for job in JOBS]
    named += [(job, module) for job in JOBS for module, _ in job.except_in]

    idle = [
        f"{module} does not {job.does}"
        for job, module in named
        if not any(
            marks(job, source) for dotted, source in sources.items() if is_within(dotted, module)
        )
    ]

    assert idle == []


def test_second_owner_is_found_by_call_and_by_import() -> None:
    by_call = Source.parse("console/plans.py", "from hmac import digest\ndigest(b'', b'', '')")
    by_import = Source.parse("console/plans.py", "from django.core.signing import dumps")

    assert len(second_owners([SEAL], [by_call])) == 1
    assert len(second_owners([SEAL], [by_import])) == 1


def test_owner_and_named_exceptions_are_free() -> None:
    owner = Source.parse("gateway/seals.py", "from django.core import signing")
    other_job = Source.parse("brokers/keys.py", "import hmac\nhmac.digest(b'', b'', '')")

    assert second_owners([SEAL], [owner, other_job]) == []
