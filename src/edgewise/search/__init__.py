"""Tree search over a policy and a value function, batched over games."""
