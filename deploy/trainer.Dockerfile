# syntax=docker/dockerfile:1
# A trainer: PyTorch, transformers, and the Python client alone, since its server runs in another container.
#
#   docker build -f deploy/trainer.Dockerfile -t dsload-trainer .
FROM python:3.12-slim-bookworm
# torch.compile needs a C compiler.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/* \
 && pip install --no-cache-dir "numpy==2.*" "pyarrow>=12" "torch==2.*" "transformers>=4.40" "wandb>=0.15" \
 && useradd --uid 65532 --create-home trainer && install -d -o 65532 -g 65532 /out
COPY --chown=65532:65532 python/dsload /home/trainer/dsload
ENV PYTHONPATH=/home/trainer
USER 65532:65532
WORKDIR /home/trainer
CMD ["python", "-m", "dsload.examples.train", "--help"]
