# The page of `cumulant serve`. Build: docker build -t cumulant .   Run: docker run --rm --network host cumulant
# The page listens on 127.0.0.1 only, so the container shares the network of the host; nobody else reaches it.
FROM debian:bookworm-slim

# Versions are those of the Debian release, which gets security fixes and nothing else.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/cumulant

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN /opt/cumulant/bin/pip install --no-cache-dir '/src[web,postgres,sign]' && rm -rf /src

# Nothing in the container needs to be root, and nothing writes outside of /data.
RUN useradd --uid 10001 --create-home --home-dir /data cumulant
USER 10001
WORKDIR /data
ENTRYPOINT ["/opt/cumulant/bin/cumulant"]
CMD ["serve", "--port", "8417"]
