# dedupd in two stages: the compiler stays in the first.
#   docker build -t dedupd .
#   docker run -p 127.0.0.1:8080:8080 -v dedupd-data:/var/lib/dedupd -e DEDUPD_HTTP_PROTECTED=false dedupd
# To a container every client is on another host: dedupd refuses it until tokens are configured (auth.tokens_file), or
# http.protected is off, as above, where the port is published on the loopback address only.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
COPY deploy/packages.sh deploy/install.sh /src/deploy/
RUN sh /src/deploy/install.sh build
COPY . /src
RUN make -C /src -s -j"$(nproc)" all && make -C /src -s install PREFIX=/usr DESTDIR=/out \
    && strip /out/usr/bin/dedupd /out/usr/bin/dedupctl

FROM ${BASE}
# Debian's libevent before deb12u1 has known holes; the newest security updates come with each build.
RUN apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends libevent-core-2.1-7 \
       libevent-pthreads-2.1-7 libhiredis0.14 librocksdb7.8 libjansson4 libxxhash0 libcurl4 libsystemd0 \
    && dpkg --compare-versions "$(dpkg-query -W -f '${Version}' libevent-core-2.1-7)" ge 2.1.12-stable-8+deb12u1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 990 --user-group --home-dir /var/lib/dedupd --shell /usr/sbin/nologin dedupd \
    && install -d -m 750 -o dedupd -g dedupd /var/lib/dedupd
COPY --from=build /out/usr /usr
# By number, so that Kubernetes can see that it is not root.
USER 990:990
VOLUME /var/lib/dedupd
EXPOSE 8080
# Loopback for the admin interface, for `docker exec ... dedupctl`; the data listener takes what the container's network lets through.
ENV DEDUPD_HTTP_LISTEN=0.0.0.0:8080 DEDUPD_ADMIN_LISTEN=127.0.0.1:8081 DEDUPD_DATA_DIR=/var/lib/dedupd
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["dedupctl", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["dedupd"]
