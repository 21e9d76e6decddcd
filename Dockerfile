# dedupd in two stages: the compiler stays in the first.
#   docker build -t dedupd .
#   docker run -p 8080:8080 -v dedupd-data:/var/lib/dedupd dedupd --set http.protected=false
# The data listener refuses other hosts until tokens are configured (auth.tokens_file) or http.protected is off.

FROM debian:bookworm-slim AS build
COPY deploy/packages.sh deploy/install.sh /src/deploy/
RUN sh /src/deploy/install.sh build
COPY . /src
RUN make -C /src -s -j"$(nproc)" all && make -C /src -s install PREFIX=/usr DESTDIR=/out \
    && strip /out/usr/bin/dedupd /out/usr/bin/dedupctl

FROM debian:bookworm-slim
RUN apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends libevent-core-2.1-7 \
       libevent-pthreads-2.1-7 libhiredis0.14 librocksdb7.8 libjansson4 libxxhash0 libcurl4 \
    && dpkg --compare-versions "$(dpkg-query -W -f '${Version}' libevent-core-2.1-7)" ge 2.1.12-stable-8+deb12u1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/dedupd --create-home --shell /usr/sbin/nologin dedupd
COPY --from=build /out/usr /usr
USER dedupd
VOLUME /var/lib/dedupd
EXPOSE 8080 8081
# Loopback for the admin interface; the data listener takes what the container's network lets through.
ENV DEDUPD_HTTP_LISTEN=0.0.0.0:8080 DEDUPD_ADMIN_LISTEN=127.0.0.1:8081 DEDUPD_DATA_DIR=/var/lib/dedupd
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["dedupctl", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["dedupd"]
