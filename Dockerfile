# edgewise with a CPU build of torch: docker build -t edgewise . && docker run --rm -v "$PWD/runs:/data/runs" edgewise train graphwalk-ppo
FROM python:3.11-slim

# A compiler makes attention over edges faster; ffmpeg writes MP4.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ ffmpeg \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --constraint constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0 \
    && pip install --no-cache-dir --constraint constraints.txt ".[render,plot,export,sweep,gymnasium]"

RUN useradd --create-home edgewise && mkdir --parents /data/runs && chown --recursive edgewise /data
USER edgewise
WORKDIR /data
ENV OMP_NUM_THREADS=1
ENTRYPOINT ["edgewise"]
CMD ["--help"]
