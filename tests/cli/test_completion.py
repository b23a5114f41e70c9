"""The script for a shell's completion."""

import shutil
import subprocess

import pytest

from amlb_ext.cli.main import main


def test_bash_completes_commands_flags_and_paths(tmp_path, capsys):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "hardsynth.bash"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "hard_suite").mkdir()
    asked = [
        f"source {script}; cd {tmp_path}",
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hardsynth',
        'echo "${COMPREPLY[@]}"; }',
        "ask hardsynth gener; ask hardsynth publish --ser",
        "ask hardsynth verify --repair hard_",
    ]
    done = subprocess.run(
        [bash, "-c", "\n".join(asked)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["generate", "--server", "hard_suite"]
