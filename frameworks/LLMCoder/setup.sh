#!/usr/bin/env bash
# The environment of the generated programs: what AMLB has of these packages, and nothing else.
set -e
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC1091
[ -f "$HERE/.setup/setup_env" ] && . "$HERE/.setup/setup_env"
PYTHON=${PY_EXEC_PATH:-python3}
"$PYTHON" -m venv --clear "$HERE/venv"
"$PYTHON" -m pip freeze | grep -i -E '^(numpy|scipy|pandas|scikit-learn|joblib|threadpoolctl|python-dateutil|pytz|six|tzdata)==' > "$HERE/venv/requirements.txt"
"$HERE/venv/bin/python" -m pip install -q --no-cache-dir --disable-pip-version-check -r "$HERE/venv/requirements.txt" ${CODER_PACKAGES:-}
# read by the prompt
"$HERE/venv/bin/python" -m pip freeze --disable-pip-version-check > "$HERE/venv/packages.txt"
