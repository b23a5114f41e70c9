"""Docker and podman as a confinement: an image without a file, and what a program reads mounted.

No image is fetched. The container sees what a program of ``bwrap`` sees: the system's folders and
the environment of the programs, to read, and its work folder. A daemon on another machine would
mount that machine's folders; the self-test's harmless program then fails, and the tier is not
taken.
"""

from __future__ import annotations

import io
import os
import resource
import shutil
import subprocess
import tarfile
import uuid

CONTAINERS = ("podman", "docker")
IMAGE = "hardsynth-nothing:1"
#: What the client needs to find its daemon; the keys of the endpoint are not among it.
CLIENT_VARIABLES = (
    "PATH", "HOME", "USER", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
)
#: Ends a program whose supervisor was killed; so long after its own limit.
SPARE_SECONDS = 10
#: To what podman lowers this limit of itself.
_PODMAN_PROCESSES = 32768


def client_environment():
    """Return the environment of the container client."""
    return {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ}


def missing_container(tier):
    """Return why a container cannot be started, nothing where it can; makes the empty image."""
    program = shutil.which(tier)
    if program is None:
        return f"{tier} is not installed"
    try:
        known = _ask(program, "image", "inspect", IMAGE)
        if known.returncode == 0:
            return ""
        made = _ask(program, "import", "-", IMAGE, stdin=_empty_archive())
    except subprocess.TimeoutExpired:
        return f"{tier} did not answer within 30 s"
    if made.returncode == 0:
        return ""
    lines = made.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"{tier} cannot make an image"


def container_command(tier, work, inside, data, readable, hidden, env, limits, uid):
    """Return the command that runs a program in a container, and the one that removes it.

    Parameters
    ----------
    tier : {'podman', 'docker'}
    work, inside : str
        The work folder, and its path in the container.
    data : str or None
        A folder of the data, to read.
    readable : sequence of str
        What the program may read beside it.
    hidden : sequence of str
        What it may not read of that.
    env : dict
        Of the program.
    limits : Limits
    uid : int
        Who runs the program; 0 for the user that runs this one.

    Returns
    -------
    run, remove : list of str
        ``run`` lacks the program itself, which is to be appended.
    """
    program = shutil.which(tier)
    name = f"hardsynth-{uuid.uuid4().hex}"
    megabytes = f"{limits.memory_mb}m"
    command = [program, "run", "--rm", "--name", name, "--pull", "never", "--log-driver", "none"]
    command += ["--network", "none", "--read-only", "--cap-drop", "ALL"]
    command += ["--security-opt", "no-new-privileges"]
    # the program, and what ends it
    command += ["--pids-limit", str(limits.processes + 1), "--cpus", str(limits.cores)]
    command += ["--memory", megabytes, "--memory-swap", megabytes]
    command += ["--ulimit", "core=0", "--ulimit", "nofile=256:256"]
    for kind, value in (("fsize", limits.work_mb << 20), ("cpu", limits.cpu_seconds)):
        command += ["--ulimit", f"{kind}={value}:{value}"]
    if tier == "podman":
        # its default may lie above what it may set itself; how many there are is held above
        most = min([_PODMAN_PROCESSES, *_known_limits(resource.RLIMIT_NPROC)])
        command += ["--ulimit", f"nproc={most}:{most}"]
    user = uid or os.getuid()
    if tier == "podman" and not uid:
        # the caller's own number, or its work folder would be somebody else's
        command += ["--userns", "keep-id"]
    command += ["--user", f"{user}:{uid or os.getgid()}"]
    command += ["--tmpfs", "/tmp:size=64m"]
    for path in _without_nested(readable):
        command += ["--mount", f"type=bind,source={os.path.realpath(path)},target={path},readonly"]
    for path in hidden:
        command += ["--mount", f"type=tmpfs,destination={path},tmpfs-size=4096"]
    command += ["--shm-size", "64m"]
    command += ["--mount", f"type=bind,source={work},target={inside}"]
    if data:
        command += ["--mount", f"type=bind,source={data},target={inside}/data,readonly"]
    for variable, value in env.items():
        command += ["--env", f"{variable}={value}"]
    seconds = int(limits.seconds + SPARE_SECONDS)
    command += ["--workdir", inside, "--entrypoint", "/usr/bin/timeout", IMAGE]
    command += ["-s", "KILL", str(seconds)]
    return command, [program, "rm", "--force", name]


def container_reason(code):
    """Return why a container ended, nothing where its program ended by itself.

    ``harness`` where it may not have started: a program may end with the same status.
    """
    if code in (125, 126, 127):
        return "harness"
    if code == 128 + 9:
        # of the memory's limit: nobody else kills in there
        return "memory"
    return "timeout" if code == 128 + 24 else ""


def _known_limits(kind):
    return [value for value in resource.getrlimit(kind) if value != resource.RLIM_INFINITY]


def _without_nested(paths):
    kept = [path for path in paths if os.path.exists(path)]
    return [
        path
        for path in kept
        if not any(path != other and path.startswith(other + "/") for other in kept)
    ]


def _empty_archive():
    buffer = io.BytesIO()
    tarfile.open(fileobj=buffer, mode="w").close()
    return buffer.getvalue()


def _ask(program, *words, stdin=b""):
    return subprocess.run(
        [program, *words],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=30,
        env=client_environment(),
    )
