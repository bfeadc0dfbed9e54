# The worker's image with bubblewrap and what agents' commands find, for sandbox.kind: bubblewrap of the chart:
#
#   docker build -t registry.example.com/team/concierge-worker-bubblewrap:0.1.0 --build-arg WORKER=concierge-worker:0.1.0 \
#     -f infra/helm/bubblewrap.Dockerfile infra/sandbox
#
# A command sees this image's /usr, read-only: the programs of the sandbox image, from the same list.
ARG WORKER
FROM ${WORKER}
USER root
COPY packages.txt /tmp/
RUN apt-get update && grep -v -e '^#' -e '^$' /tmp/packages.txt | xargs apt-get install -y --no-install-recommends bubblewrap util-linux \
  && rm -rf /var/lib/apt/lists/* /tmp/packages.txt
USER node
