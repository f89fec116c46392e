"""Names for Gymnasium: after `import edgewise.gym`, `gymnasium.make("edgewise/graphwalk")` builds a world.

`gymnasium.make("edgewise.gym:edgewise/graphwalk")` imports it by itself. Never imports torch.
"""

from edgewise.envs.adapters.gymnasium_ids import register

register()
