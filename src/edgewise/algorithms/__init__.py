"""Ways to learn, one file each: `policy`, `learn`, `state_dict` and `load_state_dict` are what they share."""
