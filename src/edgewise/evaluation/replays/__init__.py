"""The file format of recorded episodes (replays), with its checks."""
