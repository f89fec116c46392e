"""A stand-in for `edgewise train` and `edgewise resume`: writes what a run folder says of a run, and no more.

It trains frames one at a time, keeps how far it is, and writes every frame it trains into a ledger, so that a
test sees whether one was trained twice. Its return is -(log10(learning_rate) + 3)^2 at the end,
less before, and less by 0.01 for every seed.
"""

import fcntl
import json
import math
import os
import signal
import sys
import threading
import time

FRAMES, EVERY = 6, 2


def main(words):
    verb, flags = words[0], dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
    folder = flags.get("out") or words[1]
    if verb == "train":
        os.makedirs(folder)  # fails if the run exists: nothing is begun twice
        write(f"{folder}/config.json", json.dumps({"flags": flags, "evaluation": {}}), "w")
    flags = json.loads(read(f"{folder}/config.json"))["flags"]
    lock = open(f"{folder}/lock", "a+")  # noqa: SIM115 - held until the process ends
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if another process trains this run
    stops = []
    signal.signal(signal.SIGTERM, lambda *_: stops.append("SIGTERM"))
    threading.Thread(target=stop_with_parent, daemon=True).start()
    if flags.get("fail") == "true":
        sys.stdout.write("error: this run fails\n")
        sys.stdout.flush()
        sys.exit(4)
    if flags.get("die") == "true" and verb == "train":
        os.kill(os.getpid(), signal.SIGKILL)
    log(folder, event="start" if verb == "train" else "resume", frames=done(folder))
    while done(folder) < FRAMES:
        if stops:
            log(folder, event="stop", frames=done(folder), reason="SIGTERM")
            sys.exit(130)
        frames = done(folder) + 1
        time.sleep(float(flags.get("pace", "0.01")))
        write(os.environ["LEDGER"], f"{os.path.basename(folder)} {frames}\n", "a")
        write(f"{folder}/saved.new", str(frames), "w")
        os.replace(f"{folder}/saved.new", f"{folder}/saved")
        if frames % EVERY == 0:
            rate = float(flags.get("algorithm.learning_rate") or flags.get("learning_rate", "1e-3"))
            value = -((math.log10(rate) + 3) ** 2) - (FRAMES - frames) - 0.01 * int(flags.get("seed", "0"))
            log(folder, event="evaluation", frames=frames, **{"evaluation/return": value})
    log(folder, event="stop", frames=FRAMES, reason="done")


def done(folder):
    try:
        return int(read(f"{folder}/saved"))
    except FileNotFoundError:
        return 0


def stop_with_parent():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def log(folder, **event):
    write(f"{folder}/events.jsonl", json.dumps(event) + "\n", "a")


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text, mode):
    with open(path, mode) as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
