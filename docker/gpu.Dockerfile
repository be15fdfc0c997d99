# Training on a GPU, from the root of the repository:
#
#   docker build --file docker/gpu.Dockerfile --tag comes-gpu .
#   docker run --rm --gpus all --volume "$PWD:/work" comes-gpu \
#     fit photos.csv --images photos --labels maybe -o model
#
# torch brings the libraries of CUDA; the image has what finds the driver of the host.
FROM nvidia/cuda:13.0.1-base-ubuntu24.04

ENV PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1 \
    PATH=/opt/comes/bin:$PATH
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python3 -m venv /opt/comes \
    && pip install --constraint constraints.txt '.[images,scale]' \
    && install --directory --owner 1000 /work

USER 1000
WORKDIR /work
VOLUME /work
ENTRYPOINT ["comes"]
CMD ["--help"]
