"""The ASGI application that the web server loads: the sign of life, and Django for all else."""

import os
import warnings

from django.core.asgi import get_asgi_application
from django.urls import get_resolver

from gateway.health import with_health

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

# Static files leave by WhiteNoise as ordinary iterators, which Django collects first. They are a
# few kilobytes each, so that is no harm, and nothing to warn of in the log of every start.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

application = with_health(get_asgi_application())
# Django would read the addresses at the first request: a mistake in them must end the start.
assert get_resolver().url_patterns, "the console has pages"
