"""Plies of Hex per CPU-second in pgx: compiled JAX on 11 x 11, one thread.

    python benchmarks/hex_pgx.py [--games N] [--seconds S]

It imports nothing of this project, so any Python with pgx can run it; `benchmarks.hex` uses the one named by
EDGEWISE_PGX_PYTHON, or its own. Prints one number as JSON, `null` if pgx is not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
PLIES = 16


def plies_per_second(games: int, seconds: float) -> float | None:
    """Play random legal moves in `games` games at once, with resets."""
    try:
        import jax
        import jax.numpy as jnp
        import pgx
        from pgx.experimental import auto_reset
    except ImportError:
        return None
    env = pgx.make("hex")
    step = jax.vmap(auto_reset(env.step, env.init))

    def ply(carried, _):  # type: ignore[no-untyped-def]
        state, key = carried
        key, moves, births = jax.random.split(key, 3)
        action = jax.random.categorical(moves, jnp.log(state.legal_action_mask.astype(jnp.float32)))
        return (step(state, action, jax.random.split(births, games)), key), None

    play = jax.jit(lambda carried: jax.lax.scan(ply, carried, None, length=PLIES)[0])
    key = jax.random.PRNGKey(0)
    carried = (jax.jit(jax.vmap(env.init))(jax.random.split(key, games)), key)
    carried = jax.block_until_ready(play(carried))
    played, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        carried = jax.block_until_ready(play(carried))
        played += games * PLIES
    return played / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    print(json.dumps(plies_per_second(options.games, options.seconds)))


if __name__ == "__main__":
    main()
