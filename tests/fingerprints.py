"""Prints hashes of every recipe's first three batches, updates, weights and evaluation, one JSON line each.

    python -m tests.fingerprints [--data FOLDER] [RECIPE ...]

Two versions of the source tree that print the same lines train alike, bit for bit. `--data` is a folder with
the knowledge graphs `family`, `umls` and `wn18rr`; their recipes are left out without it.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.plugins import recipes
from edgewise.runs.folder import RunFolder
from edgewise.training.trainer import Trainer

BATCHES = 3
WITH_DATA = ("reasoning-family", "reasoning-umls", "reasoning-wn18rr")


def digest(parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()[:16]


def tensor_bytes(tensor):
    tensor = tensor.detach().cpu().contiguous()
    if not tensor.numel():
        return b"empty"
    head = f"{tensor.dtype}{tuple(tensor.shape)}".encode()
    return head + tensor.flatten().view(torch.uint8).numpy().tobytes()


def batch_hash(batch):
    leaves = sorted(
        (key if isinstance(key, str) else ".".join(key), value) for key, value in batch.items(True, True)
    )
    return digest(part for key, value in leaves for part in (key.encode(), tensor_bytes(value)))


def hashes_of(state):
    """The hash of every tensor and float of a nested state, whatever their names."""
    if isinstance(state, torch.Tensor):
        yield hashlib.sha256(tensor_bytes(state)).digest()
    elif hasattr(state, "items"):
        for value in state.values():
            yield from hashes_of(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from hashes_of(value)
    elif isinstance(state, float):
        yield repr(state).encode()


def evaluation_hash(evaluation):
    names = sorted(evaluation.metrics)
    arrays = [evaluation.returns, evaluation.lengths, *(evaluation.metrics[name] for name in names)]
    return digest([*(np.asarray(array).tobytes() for array in arrays), *(name.encode() for name in names)])


def fingerprint(name, *, data=None):
    torch.set_num_threads(1)
    training = load_config(name).training
    settings = {
        "total_frames": BATCHES * training.num_envs * training.rollout_length,
        "evaluation.every": None,
    }
    if name in WITH_DATA:
        settings["env.data"] = str(data / name.removeprefix("reasoning-"))
    config = load_config(name, keywords=settings)
    parts, row, evaluations = Builder(config).parts(), {"batches": [], "learnt": []}, []
    collect, learn, evaluate = parts.rollout.collect, parts.algorithm.learn, parts.evaluate

    def recorded_collect():
        batch = collect()
        row["batches"].append(batch_hash(batch))
        return batch

    def recorded_learn(batch):
        metrics = learn(batch)
        row["learnt"].append(digest(sorted(tensor_bytes(value.double()) for value in metrics.values())))
        return metrics

    def recorded_evaluate(policy, *, record=0):
        result = evaluate(policy, record=record)
        evaluations.append(evaluation_hash(result))
        return result

    parts.rollout.collect, parts.algorithm.learn = recorded_collect, recorded_learn
    with tempfile.TemporaryDirectory() as scratch:
        run = RunFolder.create(Path(scratch) / "run", config.to_plain())
        with run.locked():
            Trainer(config, replace(parts, evaluate=recorded_evaluate), run).run()
    state = parts.algorithm.state_dict()
    row["weights"] = digest(sorted(hashes_of({key: state[key] for key in state if key != "scalars"})))
    row["evaluation"] = evaluations[-1]
    row["baselines"] = digest(each.encode() for each in evaluations[:-1])
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipes", nargs="*")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    for name in options.recipes or recipes():
        if name in WITH_DATA and options.data is None:
            continue
        began = time.process_time()
        row = fingerprint(name, data=options.data)
        seconds = round(time.process_time() - began, 1)
        sys.stdout.write(json.dumps({"recipe": name, **row, "seconds": seconds}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
