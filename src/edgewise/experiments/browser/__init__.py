"""Play a game against policies on a page in the browser, or watch two of them."""
