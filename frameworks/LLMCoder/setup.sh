#!/usr/bin/env bash
# The environment of the generated programs: what AMLB has of these packages, and nothing else.
# Not called venv: there hardsynth run and AMLB would look for what AMLB itself needs.
set -e
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC1091
[ -f "$HERE/.setup/setup_env" ] && . "$HERE/.setup/setup_env"
if [ -n "${CODER_PYTHON:-}" ]; then
    # an environment of the user's own: nothing is installed
    mkdir -p "$HERE/programs"
    "$CODER_PYTHON" -m pip freeze --disable-pip-version-check > "$HERE/programs/packages.txt"
    exit 0
fi
PYTHON=${PY_EXEC_PATH:-python3}
"$PYTHON" -m venv --clear "$HERE/programs"
"$PYTHON" -m pip freeze | grep -i -E '^(numpy|scipy|pandas|scikit-learn|joblib|threadpoolctl|python-dateutil|pytz|six|tzdata)==' > "$HERE/programs/requirements.txt"
"$HERE/programs/bin/python" -m pip install -q --no-cache-dir --disable-pip-version-check -r "$HERE/programs/requirements.txt" ${CODER_PACKAGES:-}
# read by the prompt
"$HERE/programs/bin/python" -m pip freeze --disable-pip-version-check > "$HERE/programs/packages.txt"
