"""Run folders: files and digests, format, lock, checkpoints, and policies that come with edgewise."""
