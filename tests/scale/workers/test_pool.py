"""Workers on a real Ray cluster of two nodes on loopback: killed, hanging, gone, without room."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from benchmarks.kill_resume import differences
from tests.cli.conftest import FLAGS
from tests.isolation import isolated
from tests.scale.workers.runs import config_of, equal, parts_of, same_batches, trained
from tests.scale.workers.test_worker import ENVIRONMENT

from edgewise import plugins
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError, ProcessLost
from edgewise.config.run import RayConfig
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.scale.workers import pool as pool_module
from edgewise.scale.workers.cluster import connect, on_loopback
from edgewise.scale.workers.pool import RayWorkers
from edgewise.scale.workers.worker import Blueprint

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
thorough = pytest.mark.thorough


@pytest.fixture(autouse=True)
def without_plugins():
    """Workers import what this process may import, and other tests leave plug-ins behind."""
    with isolated():
        yield


MEMORY = 80 * 1024**2
"""Bytes of the object store of a node, nearly the least that Ray allows."""


@pytest.fixture(autouse=True)
def _environment():
    """Take back what Ray sets when it starts: the cluster of these tests has no tokens."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def patiently(start, attempts=8):
    """Start a node; Ray gives up after 30 s, in which a busy machine cannot do it."""
    for attempt in range(attempts):
        try:
            with on_loopback():
                return start()
        except Exception as error:
            if attempt + 1 == attempts or "timed out during startup" not in str(error):
                raise
    return None


class Nodes:
    """A cluster of real nodes, each of them stopped by its own handle."""

    def __init__(self, **settings):
        from ray.cluster_utils import Cluster

        first = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": MEMORY, **settings}
        self.cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=first))
        self.second = None

    @property
    def address(self):
        return self.cluster.address

    def join(self):
        self.second = patiently(lambda: self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY))

    def leave(self):
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None


@pytest.fixture(scope="module")
def nodes():
    """Two nodes with room for one worker each."""
    pytest.importorskip("ray", reason="needs Ray: pip install edgewise[ray]")
    made = Nodes()
    made.join()
    yield made
    made.cluster.shutdown()


def workers_of(config, nodes, **settings):
    given = RayConfig(**{"address": nodes.address, **settings})
    blueprint = Blueprint.of(config, num_envs=config.training.num_envs // config.workers)
    return RayWorkers(blueprint, count=config.workers, settings=given)


def in_this_process(config, batches):
    found, _ = trained(parts := parts_of(config), batches)
    return found, parts.algorithm.state_dict()


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_two_nodes_and_a_killed_worker_have_the_result_of_this_process(nodes, caplog):
    config = config_of()
    batches, state = in_this_process(config, 4)
    workers = workers_of(config, nodes)
    try:
        parts = parts_of(config, workers)
        found, _ = trained(parts, 2)
        here = Builder(config).evaluator
        policy = parts.algorithm.policy
        assert parts.evaluate(policy).to_json() == here(policy).to_json()
        victim = workers.pids[0]
        os.kill(victim, signal.SIGKILL)
        found += trained(parts, 2)[0]
        assert same_batches(batches, found)
        assert equal(state, parts.algorithm.state_dict())
        assert victim not in workers.pids
        assert "was lost" in caplog.text
        assert "is replaced" in caplog.text
    finally:
        workers.close()


@pytest.fixture
def line(tmp_path, monkeypatch):
    """The config of a run in an environment of a file, in which a world may hang."""
    monkeypatch.chdir(tmp_path)
    hang = f"""
import os, time
steps = 0
def wait():
    global steps
    steps += 1
    if steps < 4:  # while it is built and checked
        return
    try:
        os.close(os.open({str(tmp_path / "hung")!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    time.sleep(10000)
"""
    step = "    def advance(self, state, action):\n"
    text = ENVIRONMENT.replace(step, f"{step}        wait()\n")
    (tmp_path / "line.py").write_text(hang + text)
    with isolated():
        plugins.allow_typed(["line.py"])
        yield load_config(
            "line.py",
            keywords={"num_envs": 4, "rollout_length": 6, "workers": 2, "minibatch_size": 8, "hidden": 8},
        )


@thorough
def test_a_worker_that_hangs_is_replaced(nodes, line, tmp_path, caplog):
    workers = workers_of(line, nodes, timeout=15)
    try:
        found, _ = trained(parts := parts_of(line, workers), 2)
    finally:
        workers.close()
    assert (tmp_path / "hung").exists()
    assert "did not answer within 15 s and is replaced; its work is repeated" in caplog.text
    batches, state = in_this_process(line, 2)
    assert same_batches(batches, found)
    assert equal(state, parts.algorithm.state_dict())


@thorough
def test_work_that_hangs_every_time_stops_the_run_in_words(nodes, line, tmp_path, monkeypatch):
    file = tmp_path / "line.py"
    file.write_text(file.read_text().replace("os.O_CREAT | os.O_EXCL", "os.O_CREAT"))
    workers = workers_of(line, nodes, timeout=5, attempts=2)
    try:
        with pytest.raises(ProcessLost, match="failed 2 times to collect; the last time, a worker did not"):
            trained(parts_of(line, workers), 1)
    finally:
        workers.close()


@thorough
def test_a_node_that_leaves_and_returns(caplog, monkeypatch):
    """On a cluster of its own, since drivers that come later may be given to the node that left."""
    pytest.importorskip("ray", reason="needs Ray: pip install edgewise[ray]")
    nodes = Nodes()
    nodes.join()
    monkeypatch.setattr(pool_module, "SLOW_START", 1.0)
    config = config_of(ray__max_staleness=1)
    batches, state = in_this_process(config, 8)
    workers = workers_of(config, nodes)
    try:
        wait_for(lambda: workers._step() or len(workers.pids) == 2)
        parts = parts_of(config, workers)
        found, _ = trained(parts, 2)
        nodes.leave()
        found += trained(parts, 3)[0]
        wait_for(lambda: workers._step() or "1 of 2 workers run" in caplog.text)
        assert len(workers.pids) == 1
        nodes.join()
        wait_for(lambda: workers._step() or len(workers.pids) == 2)
        assert "all 2 workers run again" in caplog.text
        found += trained(parts, 3)[0]
        assert same_batches(batches, found)
        assert equal(state, parts.algorithm.state_dict())
    finally:
        workers.close()
        nodes.cluster.shutdown()


@thorough
def test_no_room_at_all_is_said(nodes):
    with pytest.raises(ProcessLost, match=r"no worker has run for 3 s; the cluster has 2 CPUs, .* takes 8"):
        workers_of(config_of(), nodes, start_timeout=3, cpus=8)


@thorough
def test_a_full_object_store(monkeypatch, caplog):
    """With no disk to move objects to, work waits for room, and the run stops in words if there is none."""
    ray = pytest.importorskip("ray")
    import numpy as np

    monkeypatch.setattr(pool_module, "PAUSE", 0.2)
    system = {"automatic_object_spilling_enabled": False, "local_fs_capacity_threshold": 0.0001}
    options = {"num_cpus": 1, "include_dashboard": False, "log_to_driver": False}
    patiently(lambda: ray.init(address="local", object_store_memory=MEMORY, _system_config=system, **options))
    try:
        config = config_of(training__num_envs=800, training__rollout_length=16, workers=1)
        workers = workers_of(config, type("Joined", (), {"address": None}), attempts=200)
        parts = parts_of(config, workers)
        first = parts.rollout.collect()
        size = sum(each.numel() * each.element_size() for each in first.values(True, True))
        assert 10 * 1024**2 < size < MEMORY
        pinned = [ray.put(np.zeros(MEMORY - size // 2, dtype=np.uint8))]
        threading.Timer(10, pinned.clear).start()
        batch = parts.rollout.collect().clone()
        assert "the object store of Ray is full; a batch is collected again" in caplog.text
        other = parts_of(config)
        trained_twice = [other.rollout.collect().clone() for _ in range(2)]
        assert same_batches([trained_twice[1]], [batch])
        pinned.append(ray.put(np.zeros(MEMORY - size // 2, dtype=np.uint8)))
        workers._settings = RayConfig(attempts=2)
        with pytest.raises(ProcessLost, match=r"failed 2 times to collect; .* object store of Ray was full"):
            parts.rollout.collect()
        workers.close()
    finally:
        ray.shutdown()


@thorough
def test_a_cluster_of_its_own_listens_on_loopback_only():
    pytest.importorskip("ray", reason="needs Ray: pip install edgewise[ray]")
    before = listening()
    ray, _ = connect(RayConfig(), workers=1)
    try:
        assert ray.nodes()[0]["NodeManagerAddress"] == "127.0.0.1"
        opened = listening() - before
        assert opened
        assert {address for address, _ in opened} <= LOOPBACK
    finally:
        ray.shutdown()


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
"""127.0.0.1, ::1 and ::ffff:127.0.0.1 as the kernel writes them."""
LISTENS = "0A"


def listening():
    """The addresses and inodes of all sockets of this machine that listen."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {(row[1].partition(":")[0], row[9]) for row in rows if row[3] == LISTENS}


def test_a_cluster_that_is_not_there_is_said_at_once():
    pytest.importorskip("ray", reason="needs Ray: pip install edgewise[ray]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConfigError, match=rf"ray\.address: no cluster answers at {address}") as caught:
        connect(RayConfig(address=address), workers=1)
    assert "ray start --head" in caught.value.hint


def test_ray_that_is_not_installed_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["train", "graphwalk-ppo", *FLAGS, "--workers", "2", "--out", "nowhere"]) == 2
    assert "pip install edgewise[ray]" in capsys.readouterr().err
    assert not Path("nowhere").exists()


CHANGED = ("total_frames", "checkpoint.every", "evaluation.every")
KEPT = [flag for flag in FLAGS if not any(name in flag for name in CHANGED)]
LENGTH = ["--total-frames=1600", "--checkpoint.every=64", "--evaluation.every=320"]
TRAIN = ["train", "graphwalk-ppo", *KEPT, *LENGTH]


def edgewise(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "edgewise.cli", *words], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == code, done.stderr
    return done


def killed(folder, *words, number):
    """Start a command, and send it a signal in the middle of its run; returns its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "edgewise.cli", *words, "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    saved = "checkpoints/step-*"
    wait_for(lambda: process.poll() is not None or any(int(path.name[5:]) for path in folder.glob(saved)))
    process.send_signal(number)
    process.communicate(timeout=300)
    return process.returncode


@thorough
@pytest.mark.parametrize("staleness", [0, 1])
def test_the_command_is_stopped_killed_and_continued(nodes, tmp_path, staleness):
    flags = ["--workers=2", f"--ray.address={nodes.address}", f"--max-staleness={staleness}"]
    shown = edgewise(*TRAIN, *flags, "--out", str(tmp_path / "alone"), "--json")
    assert json.loads(shown.stdout)
    assert killed(tmp_path / "run", *TRAIN, *flags, number=signal.SIGTERM) == 130
    refused = edgewise("resume", str(tmp_path / "run"), code=2)
    assert f"give it by yourself: --ray.address {nodes.address}" in refused.stderr
    edgewise("resume", str(tmp_path / "run"), f"--ray.address={nodes.address}")
    assert differences(tmp_path / "alone", tmp_path / "run") == []
    assert killed(tmp_path / "other", *TRAIN, *flags, number=signal.SIGKILL) == -signal.SIGKILL
    edgewise("resume", str(tmp_path / "other"), f"--ray.address={nodes.address}")
    assert differences(tmp_path / "alone", tmp_path / "other") == []


@thorough
def test_a_run_starts_a_cluster_of_its_own_that_nobody_else_reaches(nodes, tmp_path):
    flags = [f"--ray.address={nodes.address}"]
    edgewise(*TRAIN, "--workers=2", *flags, "--out", str(tmp_path / "there"))
    edgewise(*TRAIN, "--workers=2", "--out", str(tmp_path / "here"))
    assert differences(tmp_path / "there", tmp_path / "here") == []


@thorough
def test_workers_under_several_processes(nodes, tmp_path):
    flags = ["--workers=2", f"--ray.address={nodes.address}", "--processes=2"]
    edgewise(*TRAIN, *flags, "--out", str(tmp_path / "one"))
    edgewise(*TRAIN, *flags, "--out", str(tmp_path / "two"))
    assert differences(tmp_path / "one", tmp_path / "two") == []


@thorough
def test_seeds_share_a_cluster(nodes, tmp_path):
    flags = ["--workers=1", f"--ray.address={nodes.address}", "--seeds=2", "--jobs=2"]
    edgewise(*TRAIN, *flags, "--out", str(tmp_path / "study"))
    edgewise(*TRAIN, *flags[:2], "--seed=1", "--out", str(tmp_path / "one"))
    runs = sorted((tmp_path / "study" / "runs").iterdir())
    assert len(runs) == 2
    assert differences(runs[1], tmp_path / "one") == []
