"""A benchmark of reinforcement learning on graphs: ten tasks, everyone's methods, the same instances.

`tasks/` has a file per task; `Method` is what is measured; `edgewise benchmark graphs` measures it.
"""
