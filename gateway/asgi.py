"""The ASGI application that the web server loads: Django, and nothing beside it yet."""

import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

# Static files leave by WhiteNoise as ordinary iterators, which Django collects first. They are a
# few kilobytes each, so that is no harm, and nothing to warn of in the log of every start.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

application = get_asgi_application()
