# Runloom in a container: built by the same scripts as everywhere else, served by a user without rights.
#
#   docker build -t runloom .
#   docker run -p 127.0.0.1:3000:3000 -e RUNLOOM_TOKEN=… -v runloom-data:/var/lib/runloom runloom
#
# Without DATABASE_URL it runs its own PostgreSQL in the data volume; compose.yaml has one beside it.

FROM node:22-bookworm-slim AS node

FROM rust:1.95-bookworm AS build
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ENV CARGO_TARGET_DIR=/target
WORKDIR /runloom
COPY . .
RUN scripts/setup.sh build && scripts/build.sh release && cp "$CARGO_TARGET_DIR"/checkouts/*/release/runloom /usr/local/bin/runloom

FROM debian:bookworm-slim
COPY scripts/lib.sh scripts/setup.sh /tmp/runloom/scripts/
RUN apt-get update -qq \
    && apt-get install -y --no-install-recommends ca-certificates \
    && /tmp/runloom/scripts/setup.sh serve \
    && rm -rf /tmp/runloom /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/runloom --create-home runloom \
    && install -d -o runloom -g runloom -m 0700 /var/lib/runloom /workspace
COPY --from=build /usr/local/bin/runloom /usr/local/bin/runloom
USER runloom
# Off loopback the server starts only with RUNLOOM_TOKEN.
ENV RUNLOOM_SERVER__LISTEN=0.0.0.0:3000 \
    RUNLOOM_SERVER__DATA_DIR=/var/lib/runloom
VOLUME ["/var/lib/runloom", "/workspace"]
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3000 && printf 'GET /readyz HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
CMD ["runloom", "serve"]
