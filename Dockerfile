# The service in a small image: onnxruntime counts, torch stays in the stage that exports the model.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
WORKDIR /project
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels . \
    && pip install -c constraints.txt "$(echo /wheels/gbdgc-*.whl)[export]" \
    && gbdgc export src/gbdgc/weights/bundled.safetensors --to onnx --out /model/bundled.onnx

FROM python:${PYTHON}-slim
# Compiled code and fonts are cached in the one folder that may be written to.
ENV PIP_NO_CACHE_DIR=1 NUMBA_CACHE_DIR=/tmp/numba MPLCONFIGDIR=/tmp/matplotlib
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install -c /wheels/constraints.txt "$(echo /wheels/gbdgc-*.whl)[onnx,serve]" \
    && rm -r /wheels \
    && useradd --create-home --uid 10001 gbdgc
COPY --from=build /model /model
USER 10001
WORKDIR /home/gbdgc
EXPOSE 8000
HEALTHCHECK --start-period=30s --timeout=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/v1/health', timeout=4)"]
ENTRYPOINT ["gbdgc"]
CMD ["serve", "--weights", "/model/bundled.onnx", "--host", "0.0.0.0", "--port", "8000"]
