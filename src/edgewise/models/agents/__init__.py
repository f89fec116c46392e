"""Networks over what each agent observes by itself: encoders, value and quantile heads, actors."""
