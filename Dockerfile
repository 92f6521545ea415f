# One image for every process of Samsa; docker-compose.yml says which of them a container is.
FROM python:3.11-slim

RUN useradd --system --uid 10001 --home-dir /var/lib/samsa samsa \
    && install -d -o samsa -g samsa -m 0700 /var/lib/samsa /run/samsa

WORKDIR /opt/samsa
COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt
COPY manage.py ./
COPY docker/entry docker/
COPY brokers brokers
COPY cli cli
COPY connectors connectors
COPY console console
COPY gateway gateway
RUN python -m compileall -q brokers cli connectors console gateway

USER samsa
ENV SAMSA_HOME=/var/lib/samsa PYTHONUNBUFFERED=1
VOLUME ["/var/lib/samsa", "/run/samsa"]
ENTRYPOINT ["/opt/samsa/docker/entry"]
CMD ["python", "-P", "-m", "cli", "--help"]
# That of a container with brokers; the others say their own.
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-P", "-m", "cli", "status"]
