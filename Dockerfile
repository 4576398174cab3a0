# nodeagent as a container image.
#
#   make image                         with docker, podman or buildah, whichever is there; prints the sizes
#   docker build -t nodeagent:0.1.0 .  the same by hand
#
# Nothing in here depends on the architecture. Arguments:
#   BASE                        any Debian or Ubuntu; Python (3.10 or newer) is installed when it is not in it
#   PIP_INDEX_URL               where packages come from, if not from PyPI
#   VERSION, REVISION, SOURCE   for the labels
# The secret `ca` is a file with certificates, for a package index behind a proxy that has its own.
ARG BASE=docker.io/library/debian:bookworm-slim

# What both stages stand on. tini is process 1: it passes signals on, and collects processes that lost their parent, such
# as those that a driver library or a `kubectl exec` started.
FROM ${BASE} AS python
RUN set -eu; packages=tini; \
    command -v python3 >/dev/null || packages="$packages python3"; \
    apt-get update -q; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages; \
    apt-get clean; rm -rf /var/lib/apt/lists/*

FROM python AS build
RUN set -eu; packages="gcc libc6-dev"; \
    python3 -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3-venv"; \
    python3 -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' \
        || packages="$packages python3-dev"; \
    apt-get update -q; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock requirements-build.lock ./
ARG PIP_INDEX_URL
# Wheels only: nothing but our own package is built here. kubernetes/aio and what only it needs, 80 MB, are never used.
RUN --mount=type=secret,id=ca,target=/run/secrets/ca \
    set -eu; [ ! -s /run/secrets/ca ] || export PIP_CERT=/run/secrets/ca; \
    python3 -m venv tools; python3 -m venv --without-pip /opt/nodeagent; \
    tools/bin/pip install -q --require-hashes --only-binary=:all: -r requirements-build.lock; \
    to="tools/bin/pip --python /opt/nodeagent/bin/python"; \
    $to install -q --require-hashes --only-binary=:all: -r requirements.lock; \
    $to uninstall -q -y aiohttp aiohttp-retry aiosignal aiohappyeyeballs frozenlist multidict propcache yarl; \
    rm -r /opt/nodeagent/lib/python3*/site-packages/kubernetes/aio
COPY . source
# Byte code is made now, since the root file system is read-only later: 9 MB that make every start 0.3 s shorter. The
# generated models of `kubernetes` are not imported and stay without.
RUN set -eu; export PATH="/build/tools/bin:$PATH"; \
    pip wheel -q --no-build-isolation --no-deps --no-index -w wheel ./source; \
    pip --python /opt/nodeagent/bin/python install -q --no-deps --no-index wheel/*.whl; \
    cd /; /opt/nodeagent/bin/nodeagent scan --dry-run; \
    find /opt/nodeagent -name __pycache__ -prune -exec rm -r {} +; \
    /opt/nodeagent/bin/python -m compileall -q --invalidation-mode unchecked-hash \
        -x 'kubernetes/client/(api|models)/' /opt/nodeagent/lib

FROM python
COPY --from=build /opt/nodeagent /opt/nodeagent
ENV PATH=/opt/nodeagent/bin:$PATH PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["tini", "--", "nodeagent"]
CMD ["run"]
ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=
LABEL org.opencontainers.image.title="nodeagent" \
      org.opencontainers.image.description="Node health daemon for Huawei Ascend clusters" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
