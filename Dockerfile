# yarnctl and the emulator. Docker is all that it needs:  docker build -t yarnctl .
# It runs as user 10001 with a root file system that is never written:
#   docker run --read-only --tmpfs /tmp -v yarnctl:/state -p 127.0.0.1:8188:8188 yarnctl yarnctl-daemon --rm=URL
FROM debian:bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-pip python3-venv
COPY . /src/
RUN python3 -m venv --without-pip /opt/yarnctl \
 && python3 -m pip --python /opt/yarnctl/bin/python install --no-cache-dir --no-warn-script-location \
        --constraint /src/release/constraints.txt '/src[emulator,ha]'

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --shell /usr/sbin/nologin yarn \
 && install -d -o yarn -g yarn -m 0755 /work /state \
 && ln -s /opt/yarnctl/bin/yarnctl /opt/yarnctl/bin/yarn-emulator /usr/local/bin/
COPY --from=build /opt/yarnctl /opt/yarnctl
COPY docker/emulator/bin/ /usr/local/bin/
ENV PYTHONUNBUFFERED=1
USER 10001
WORKDIR /work
CMD ["yarnctl", "--help"]
