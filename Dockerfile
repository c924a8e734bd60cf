# docker build -t beholder . && mkdir -p out && docker run --rm --user "$(id -u)" -v "$PWD/out:/out" beholder
# With --user the files are yours, in a folder that only you may write. Without arguments: the demo, offline. With
# arguments: `beholder` with them.
FROM python:3.11-slim
COPY . /beholder
RUN pip install --no-cache-dir -c /beholder/constraints.txt '/beholder[torch]' && useradd --create-home auditor \
    && mkdir /out && chown auditor /out
USER auditor
WORKDIR /out
ENV HF_HUB_OFFLINE=1 BEHOLDER_STORE=/out/store HOME=/tmp
VOLUME /out
ENTRYPOINT ["beholder"]
CMD ["audit", "--out", "/out/demo"]
