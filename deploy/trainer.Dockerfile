# syntax=docker/dockerfile:1
# A trainer with the Python client alone: its server runs in another container.
FROM python:3.12-slim-bookworm
RUN pip install --no-cache-dir "numpy==2.*" "pyarrow>=12" \
 && useradd --uid 65532 --create-home trainer
COPY --chown=65532:65532 python/dsload /home/trainer/dsload
COPY --chown=65532:65532 deploy/trainer.py /home/trainer/trainer.py
USER 65532:65532
WORKDIR /home/trainer
CMD ["python", "trainer.py"]
