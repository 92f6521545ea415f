# Two images: `samsa` for every process of Samsa (docker-compose.yml says which of them a container
# is), and `samsa-spark` with Spark in it as well.
FROM python:3.11-slim AS samsa

RUN useradd --system --uid 10001 --home-dir /var/lib/samsa samsa \
    && install -d -o samsa -g samsa -m 0700 /var/lib/samsa /run/samsa

WORKDIR /opt/samsa
COPY requirements-run.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements-run.txt
COPY manage.py ./
COPY docker/entry docker/
COPY brokers brokers
COPY cli cli
COPY connectors connectors
COPY console console
COPY gateway gateway
COPY spark_integration spark_integration
RUN python -m compileall -q brokers cli connectors console gateway spark_integration

USER samsa
ENV SAMSA_HOME=/var/lib/samsa PYTHONUNBUFFERED=1
VOLUME ["/var/lib/samsa", "/run/samsa"]
ENTRYPOINT ["/opt/samsa/docker/entry"]
CMD ["python", "-P", "-m", "cli", "--help"]
# That of a container with brokers; the others say their own.
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-P", "-m", "cli", "status"]

# What a master, a worker or a Connect server of Spark runs in. Executors find the package of
# format("samsa") by its name.
FROM samsa AS samsa-spark

USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY requirements-spark.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements-spark.txt
RUN python -P -m cli spark package --out /tmp/package \
    && pip install --no-cache-dir --no-index --no-deps /tmp/package/*.whl \
    && rm -r /tmp/package
ENV PYSPARK_PYTHON=/usr/local/bin/python
USER samsa
CMD ["spark-class", "org.apache.spark.deploy.master.Master", "--help"]
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/json/', timeout=4)"]
