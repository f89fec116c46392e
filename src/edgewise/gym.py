"""Names for Gymnasium: after `import edgewise.gym`, `gymnasium.make("edgewise/NAME")` builds a world.

`gymnasium.make("edgewise.gym:edgewise/NAME")` imports it by itself. Never imports torch.
"""

from edgewise.envs.adapters.gymnasium_ids import register

register()
