# posviz as a server. Build and try it:
#   docker build -t posviz .
#   docker run --rm -p 127.0.0.1:8501:8501 posviz
FROM python:3.11-slim

ENV PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONUNBUFFERED=1

WORKDIR /app

# Another index of CPU builds of torch; empty: none but pip's own.
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu
COPY requirements.txt ./
COPY scripts/install.py scripts/
RUN python scripts/install.py requirements.txt

COPY .streamlit/config.toml .streamlit/
COPY app.py ./
COPY pages pages
COPY posviz posviz
RUN python -m compileall -q app.py pages posviz \
    && useradd --create-home --uid 10001 posviz

# Everything above belongs to root: the server cannot change its own code.
USER posviz
ENV PYTHONDONTWRITEBYTECODE=1 \
    POSVIZ_HOSTED=1 \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_SERVER_PORT=8501
EXPOSE 8501

HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['STREAMLIT_SERVER_PORT'] + '/_stcore/health', timeout=4)"]

CMD ["python", "-m", "streamlit", "run", "app.py"]
