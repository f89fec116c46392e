"""How good a policy is: episodes on fixed instances, and what may be concluded from them."""
