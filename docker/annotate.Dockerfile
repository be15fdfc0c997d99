# The annotation server, from the root of the repository:
#
#   docker build --file docker/annotate.Dockerfile --tag comes-annotate .
#   docker run --rm --volume "$PWD/work:/work" comes-annotate \
#     init project --items photos --classes classes.txt
#   docker run --publish 8000:8000 --volume "$PWD/work:/work" comes-annotate
#
# work/ belongs to the user 1000 and holds items, classes and the project. The second command
# prints the links to send to people; behind a proxy, tell it --address and --proxy.
FROM python:3.13-slim-bookworm

ENV PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
# torch without CUDA, which nothing here uses; the driver is for a database of PostgreSQL.
RUN pip install --constraint constraints.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu '.[annotate]' 'psycopg[binary]' \
    && useradd --uid 1000 --create-home comes \
    && install --directory --owner comes /work

USER 1000
WORKDIR /work
VOLUME /work
EXPOSE 8000
HEALTHCHECK --start-period=30s CMD ["python", "-c", \
    "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/static/annotate.css')"]
ENTRYPOINT ["comes", "annotate"]
CMD ["serve", "project", "--host", "0.0.0.0"]
